package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// apart are the types that may have a separate etcd, in short form: no service of the suite compares their
// revisions with those of other types, and no transaction joins them with others.
var apart = map[string][]string{
	"":              {"events", "podtemplates", "replicationcontrollers"},
	"apps":          {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":   {"horizontalpodautoscalers"},
	"batch":         {"cronjobs", "jobs"},
	"coordination.": {"leasecandidates", "leases"},
	"networking.":   {"ingresses", "networkpolicies"},
	"scheduling.":   {"podgroups", "workloads"},
	"storage.":      {"csistoragecapacities"},
}

// Apart returns the types that may have a separate etcd, with the groups of a vocabulary.
func Apart(v vocabulary.Vocabulary) (types []resource.GroupResource) {
	for group, resources := range apart {
		for _, name := range resources {
			types = append(types, resource.GroupResource{Group: v.Group(group), Resource: name})
		}
	}
	slices.SortFunc(types, func(a, b resource.GroupResource) int { return strings.Compare(a.Path(), b.Path()) })
	return types
}

// checkApart returns an error with the reason for a type that may not have a separate etcd.
func checkApart(gr resource.GroupResource, v vocabulary.Vocabulary) error {
	allowed := Apart(v)
	if slices.Contains(allowed, gr) {
		return nil
	}
	if gr == (resource.GroupResource{Group: v.Group("events."), Resource: "events"}) {
		return errors.New("these are the same objects as those of the core group: use /events")
	}
	if services := readBy(gr, v); services != "" {
		return fmt.Errorf("cannot have an etcd of its own: it is read together with other resources, by %s", services)
	}
	names := make([]string, len(allowed))
	for i, one := range allowed {
		names[i] = one.Group + "/" + one.Resource
	}
	return fmt.Errorf("is not a resource that can have an etcd of its own; these can: %s", strings.Join(names, ", "))
}

// readBy returns the services that read a type for what they decide, with commas between; empty
// if there is none.
func readBy(gr resource.GroupResource, v vocabulary.Vocabulary) string {
	gr.Group = v.ShortGroup(gr.Group)
	var names []string
	for _, callers := range services.Callers() {
		for _, c := range callers {
			if slices.Contains(c.Types, gr) {
				names = append(names, c.Service)
			}
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}
