// Package limits applies LimitRanges: it sets the default requests and limits of new
// pods' containers and rejects pods and claims outside the bounds. The total of a
// namespace is limited by quotas, see package usage. It implements LimitRanger under
// "Admission plugins" of the specification.
package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Range is the part of a stored LimitRange that admission reads.
type Range struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Limits []item `json:"limits"`
	} `json:"spec"`
}

// item holds the bounds and defaults of one type: Container, Pod or
// PersistentVolumeClaim.
type item struct {
	Type           string        `json:"type"`
	Max            quota.Amounts `json:"max"`
	Min            quota.Amounts `json:"min"`
	Default        quota.Amounts `json:"default"`
	DefaultRequest quota.Amounts `json:"defaultRequest"`
	MaxRatio       quota.Amounts `json:"maxLimitRequestRatio"`
}

// Parse reads a stored LimitRange.
func Parse(o services.Object) (Range, error) {
	var r Range
	return r, json.Unmarshal(o.JSON, &r)
}

// Plugin applies the ranges.
type Plugin struct {
	Ranges     review.Collection[Range]
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
}

// pod reports whether a request sets the resources of a pod: it creates or, from release 1.36 on,
// resizes it.
func (p *Plugin) pod(r *review.Review) bool {
	return r.Is(services.OperationCreate, "", "pods") || p.resizes(r)
}

func (p *Plugin) resizes(r *review.Review) bool {
	return r.Is(services.OperationUpdate, "", "pods/resize") && !p.Release.Before(release.V136)
}

// leaving reports whether the object of an update is being deleted: it may have to be written to
// be gone, whatever the bounds are.
func leaving(r *review.Review) (bool, error) {
	if len(r.OldObject) == 0 {
		return false, nil
	}
	var old struct {
		Metadata struct {
			DeletionTimestamp *string `json:"deletionTimestamp"`
		} `json:"metadata"`
	}
	err := json.Unmarshal(r.OldObject, &old)
	return old.Metadata.DeletionTimestamp != nil, err
}

// Mutate sets the default requests and limits of the containers of a pod that is created or
// resized. Those of a new pod are listed in an annotation; a resize changes resources only.
func (p *Plugin) Mutate(_ context.Context, r *review.Review) error {
	if !p.pod(r) {
		return nil
	}
	ranges := p.Ranges.List(r.Namespace)
	if len(ranges) == 0 {
		return nil
	}
	if leaves, err := leaving(r); leaves || err != nil {
		return err
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec := tree.Child(pod, "spec")
	var notes []string
	for _, each := range ranges {
		for _, item := range each.Spec.Limits {
			if item.Type == "Container" {
				notes = append(notes, item.fill(spec)...)
			}
		}
	}
	if len(notes) == 0 {
		return nil
	}
	if !p.resizes(r) {
		annotations := tree.Object(tree.Object(pod, "metadata"), "annotations")
		annotations[p.Vocabulary.Qualified("", "limit-ranger")] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
	}
	r.Changed()
	return nil
}

// fill sets the defaults of the containers of a pod spec and describes what it set.
func (i *item) fill(spec map[string]any) (notes []string) {
	for _, list := range []struct{ field, called string }{{"containers", "container"}, {"initContainers", "init container"}} {
		containers, _ := spec[list.field].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			requests, limits := fillIn(container, "requests", i.DefaultRequest), fillIn(container, "limits", i.Default)
			for _, set := range []struct {
				names []string
				what  string
			}{{requests, "request"}, {limits, "limit"}} {
				if len(set.names) > 0 {
					notes = append(notes, fmt.Sprintf("%s %s for %s %v", strings.Join(set.names, ", "), set.what, list.called, container["name"]))
				}
			}
		}
	}
	return notes
}

// fillIn sets the amounts that a container lacks in resources.<field>, and returns their
// names.
func fillIn(container map[string]any, field string, defaults quota.Amounts) (set []string) {
	for _, name := range slices.Sorted(maps.Keys(defaults)) {
		requested := tree.Object(tree.Object(container, "resources"), field)
		if requested[name] == nil {
			q := defaults[name]
			requested[name] = q.String()
			set = append(set, name)
		}
	}
	return set
}

// maxViolations bounds the violations that one error lists: thousands of containers can
// violate every limit of every range.
const maxViolations = 100

// Validate rejects pods and claims outside the bounds. The error lists every violation, up
// to maxViolations.
func (p *Plugin) Validate(_ context.Context, r *review.Review) error {
	claim := r.Is(services.OperationCreate, "", "persistentvolumeclaims") || r.Is(services.OperationUpdate, "", "persistentvolumeclaims")
	if !claim && !p.pod(r) {
		return nil
	}
	ranges := p.Ranges.List(r.Namespace)
	if len(ranges) == 0 {
		return nil
	}
	if leaves, err := leaving(r); leaves || err != nil {
		return err
	}
	var o podOrClaim
	if err := json.Unmarshal(r.Object, &o); err != nil {
		return services.BadRequest("the object is not readable: %v", err)
	}
	containers, total := slices.Concat(o.Spec.Containers, o.Spec.InitContainers), p.total(&o)
	var violations []error
	for _, each := range ranges {
		for _, item := range each.Spec.Limits {
			switch {
			case claim && item.Type == "PersistentVolumeClaim":
				violations = append(violations, item.check(quota.Requirements{Requests: o.Spec.Resources.Requests}, false)...)
			case !claim && item.Type == "Container":
				for _, c := range containers {
					violations = append(violations, item.check(c.Resources, true)...)
					if len(violations) > maxViolations {
						return r.Forbid("[%s, and more]", joined(violations[:maxViolations]))
					}
				}
			case !claim && item.Type == "Pod":
				violations = append(violations, item.check(total, true)...)
			}
		}
	}
	switch len(violations) {
	case 0:
		return nil
	case 1:
		return r.Forbid("%v", violations[0])
	}
	return r.Forbid("[%s]", joined(violations))
}

func joined(violations []error) string {
	return strings.ReplaceAll(errors.Join(violations...).Error(), "\n", ", ")
}
