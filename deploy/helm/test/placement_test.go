package test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// placement describes the pod anti-affinity and the spread constraints of a pod, all of which
// must select the pods of its own component.
func placement(t *testing.T, w workload) string {
	t.Helper()
	var parts []string
	check := func(labels map[string]string) {
		if component(labels) != w.component || labels["app.kubernetes.io/instance"] != release {
			t.Errorf("%s: is placed by the pods with %v", w.name, labels)
		}
	}
	if a := w.pod.Affinity; a != nil && a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			check(term.LabelSelector.MatchLabels)
			parts = append(parts, "required "+term.TopologyKey)
		}
		for _, term := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			check(term.PodAffinityTerm.LabelSelector.MatchLabels)
			parts = append(parts, "preferred "+term.PodAffinityTerm.TopologyKey)
		}
	}
	for _, c := range w.pod.TopologySpreadConstraints {
		check(c.LabelSelector.MatchLabels)
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			parts = append(parts, fmt.Sprintf("spread %s %d", c.TopologyKey, c.MaxSkew))
		}
	}
	return strings.Join(parts, ", ")
}

// TestReplicasArePausedBetween: the roll of a service waits until DNS has lost the former replica.
func TestReplicasArePausedBetween(t *testing.T) {
	for file, seconds := range map[string]int32{"default": 35, "minimal": 0} {
		for _, d := range all[*appsv1.Deployment](render(t, "values/"+file+".yaml")) {
			want := seconds
			if slices.Contains([]string{"frontdoor", "csr-signer", "token-cleaner", "lifecycle"}, component(d.Labels)) {
				want = 0 // nobody finds them by the addresses of their pods
			}
			if d.Spec.MinReadySeconds != want {
				t.Errorf("%s: %s waits for %d s, want %d", file, d.Name, d.Spec.MinReadySeconds, want)
			}
		}
	}
}

// TestMembersAreApart: no two members of etcd or NATS may be on one node unless the values
// allow it, and spread constraints of a component replace those of all.
func TestMembersAreApart(t *testing.T) {
	for file, want := range map[string]map[string]string{
		"default": {"etcd": "required kubernetes.io/hostname", "nats": "required kubernetes.io/hostname", "store": ""},
		"minimal": {"etcd": "", "nats": "preferred kubernetes.io/hostname", "store": ""},
		"ha": {"etcd": "required kubernetes.io/hostname, spread topology.kubernetes.io/zone 1", "nats": "", "store": "spread rack 2",
			"authn": "spread topology.kubernetes.io/zone 1"},
	} {
		found := 0
		for _, w := range workloads(render(t, "values/"+file+".yaml")) {
			expected, ok := want[w.component]
			if !ok {
				continue
			}
			found++
			if got := placement(t, w); got != expected {
				t.Errorf("%s: %s is placed by %q, want %q", file, w.name, got, expected)
			}
		}
		if found != len(want) {
			t.Errorf("%s: %d of %d components", file, found, len(want))
		}
	}
}
