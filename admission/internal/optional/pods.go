// Package optional holds small admission plugins that are off by default. They decide
// about one request by looking at it and at what is stored; one of them creates
// namespaces. It serves section "Admission plugins" of the specification.
package optional

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// containers returns the containers of a pod, first those that run before the others.
func containers(spec map[string]any) []map[string]any {
	return slices.Concat(tree.Objects(spec, "initContainers"), tree.Objects(spec, "containers"))
}

// SecurityContextDeny refuses with Forbidden (403) pods that choose their user or their
// SELinux context.
func SecurityContextDeny(_ context.Context, r *review.Review) error {
	_, spec, err := r.WrittenPod()
	if err != nil {
		return err
	}
	whole := tree.Child(spec, "securityContext")
	for _, field := range []struct{ name, title string }{
		{"supplementalGroups", "SupplementalGroups"}, {"seLinuxOptions", "SELinuxOptions"}, {"runAsUser", "RunAsUser"}, {"fsGroup", "FSGroup"},
	} {
		if whole[field.name] != nil {
			return r.Forbid("pod.Spec.SecurityContext.%s is forbidden", field.title)
		}
	}
	for _, c := range containers(spec) {
		own := tree.Child(c, "securityContext")
		if own["seLinuxOptions"] != nil {
			return r.Forbid("SecurityContext.SELinuxOptions is forbidden")
		}
		if own["runAsUser"] != nil {
			return r.Forbid("SecurityContext.RunAsUser is forbidden")
		}
	}
	return nil
}

// LimitPodHardAntiAffinityTopology refuses with Forbidden (403) pods that must not run
// near others in a topology that is larger than a node.
func LimitPodHardAntiAffinityTopology(v vocabulary.Vocabulary) func(context.Context, *review.Review) error {
	hostname := v.Qualified("", "hostname")
	return func(_ context.Context, r *review.Review) error {
		_, spec, err := r.WrittenPod()
		if err != nil {
			return err
		}
		for _, term := range tree.Objects(tree.Child(spec, "affinity", "podAntiAffinity"), "requiredDuringSchedulingIgnoredDuringExecution") {
			if key := tree.Text(term, "topologyKey"); key != hostname {
				return r.Forbid("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %s but only key %s is allowed", key, hostname)
			}
		}
		return nil
	}
}

// ExtendedResourceToleration lets pods run on the nodes of the extended resources that
// they request.
func ExtendedResourceToleration(v vocabulary.Vocabulary) func(context.Context, *review.Review) error {
	return func(_ context.Context, r *review.Review) error {
		_, spec, err := r.WrittenPod()
		if err != nil {
			return err
		}
		wanted := map[string]bool{}
		for _, c := range containers(spec) {
			for name := range tree.Child(c, "resources", "requests") {
				if extended(name, v) {
					wanted[name] = true
				}
			}
		}
		if len(wanted) == 0 {
			return nil
		}
		if tolerations, changed := tolerating(tree.List(spec, "tolerations"), wanted); changed {
			spec["tolerations"] = tolerations
			r.Changed()
		}
		return nil
	}
}

// extended reports whether a resource is one that others than the maker define.
func extended(name string, v vocabulary.Vocabulary) bool {
	return strings.Contains(name, "/") && !strings.Contains(name, v.Domain+"/") && !strings.HasPrefix(name, "requests.") &&
		len(validation.IsQualifiedName("requests."+name)) == 0
}

// tolerating returns tolerations with one for each resource. The resources that have
// theirs already are taken out of wanted.
func tolerating(tolerations []any, wanted map[string]bool) (all []any, changed bool) {
	for i, t := range tolerations {
		given, _ := t.(map[string]any)
		name := tree.Text(given, "key")
		if !wanted[name] || tree.Text(given, "operator") != "Exists" || tree.Text(given, "effect") != "NoSchedule" || tree.Text(given, "value") != "" {
			continue
		}
		delete(wanted, name)
		if given["tolerationSeconds"] != nil {
			tolerations, changed = slices.Clone(tolerations), true
			tolerations[i] = toleration(name)
		}
	}
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		tolerations = append(tolerations, toleration(name))
	}
	return tolerations, changed || len(names) > 0
}

func toleration(key string) map[string]any {
	return map[string]any{"key": key, "operator": "Exists", "effect": "NoSchedule"}
}
