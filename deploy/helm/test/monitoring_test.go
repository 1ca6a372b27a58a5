package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// TestRules renders the alerts: nothing in them is taken for a template, and there are none
// unless they are asked for.
func TestRules(t *testing.T) {
	render := func(args ...string) string {
		out, err := runHelm(t.Context(), append([]string{"template", release, chart, "--namespace=" + namespace}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if strings.Contains(render(), "PrometheusRule") {
		t.Error("the alerts are installed where no operator may be")
	}
	out := render("--set=monitoring.rules.enabled=true", "--set=monitoring.rules.labels.release=prometheus", "--show-only=templates/monitoring.yaml")
	var rule struct {
		Kind     string
		Metadata struct{ Labels map[string]string }
		Spec     struct {
			Groups []struct {
				Rules []struct {
					Alert       string
					Annotations map[string]string
				}
			}
		}
	}
	if err := goyaml.Unmarshal([]byte(out), &rule); err != nil {
		t.Fatal(err)
	}
	if rule.Kind != "PrometheusRule" || rule.Metadata.Labels["release"] != "prometheus" || len(rule.Spec.Groups) < 4 {
		t.Fatalf("rendered %s", out)
	}
	if first := rule.Spec.Groups[0].Rules[0]; !strings.Contains(first.Annotations["summary"], "{{ $labels.job }}") {
		t.Errorf("%s says %q", first.Alert, first.Annotations["summary"])
	}
}

// TestNotes: a command of the notes uses only files that exist or that another command makes.
func TestNotes(t *testing.T) {
	options := regexp.MustCompile(`--(?:kubeconfig|certificate-authority|client-certificate|client-key) (\S+)`)
	made := regexp.MustCompile(`> (\S+)`)
	for mode, want := range map[string]int{"job": 1, "existing": 1, "certManager": 3} {
		out, err := runHelm(t.Context(), "install", release, chart, "--dry-run=client", "--set=pki.mode="+mode)
		if err != nil {
			t.Fatal(err)
		}
		_, notes, _ := strings.Cut(out, "\nNOTES:\n")
		files := []string{"admin/kubeconfig"} // of portico pki
		for _, match := range made.FindAllStringSubmatch(notes, -1) {
			files = append(files, match[1])
		}
		used := options.FindAllStringSubmatch(notes, -1)
		for _, match := range used {
			if !slices.Contains(files, match[1]) {
				t.Errorf("%s: nothing makes %s", mode, match[1])
			}
		}
		if len(used) != want {
			t.Errorf("%s: %d files, want %d: %s", mode, len(used), want, notes)
		}
	}
}

// TestPodMonitor: Prometheus finds the status ports of all services and of etcd, and calls their jobs as
// the alerts expect it.
func TestPodMonitor(t *testing.T) {
	out, err := runHelm(t.Context(), "template", release, chart, "--set=monitoring.podMonitor.enabled=true", "--set=networkPolicy.metrics[0].namespaceSelector.matchLabels.a=b", "--show-only=templates/monitoring.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var monitor struct {
		Kind string
		Spec struct {
			JobLabel string `yaml:"jobLabel"`
			Selector struct {
				MatchLabels      map[string]string `yaml:"matchLabels"`
				MatchExpressions []struct {
					Key, Operator string
					Values        []string
				} `yaml:"matchExpressions"`
			}
			PodMetricsEndpoints []struct{ Port, Path string } `yaml:"podMetricsEndpoints"`
		}
	}
	if err := goyaml.Unmarshal([]byte(out), &monitor); err != nil {
		t.Fatal(err)
	}
	spec := monitor.Spec
	if monitor.Kind != "PodMonitor" || spec.JobLabel != "app.kubernetes.io/component" || len(spec.PodMetricsEndpoints) != 1 || len(spec.Selector.MatchExpressions) != 1 {
		t.Fatalf("rendered %s", out)
	}
	found := 0
	for _, w := range workloads(render(t, "values/default.yaml")) {
		if !slices.Contains(spec.Selector.MatchExpressions[0].Values, w.component) {
			continue
		}
		found++
		if !slices.ContainsFunc(w.pod.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == spec.PodMetricsEndpoints[0].Port }) {
			t.Errorf("%s has no port %s", w.name, spec.PodMetricsEndpoints[0].Port)
		}
	}
	if found != len(services)+1 {
		t.Errorf("%d services and etcd, want %d", found, len(services)+1)
	}
	out, err = runHelm(t.Context(), "template", release, chart, "--values=values/external.yaml", "--set=monitoring.podMonitor.enabled=true", "--set=networkPolicy.metrics[0].namespaceSelector.matchLabels.a=b", "--show-only=templates/monitoring.yaml")
	if err != nil || strings.Contains(out, `"etcd"`) {
		t.Errorf("an etcd that is elsewhere is selected: %v %s", err, out)
	}
}
