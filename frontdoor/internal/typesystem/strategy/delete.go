package strategy

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
)

// CheckPreconditions checks the preconditions of a deletion, which may be nil. It returns a
// Conflict (409) if the UID or resourceVersion differs from that of the object.
func CheckPreconditions(t *catalogue.Type, p *metav1.Preconditions, current services.Object) error {
	if p == nil {
		return nil
	}
	conflict := func(what, want, is, happened string) error {
		if t.Behavior.DefinesTypes || t.Behavior.SpecFinalizers { // definitions and namespaces
			return services.Conflict(t.Group, t.Resource, current.Key.Name, fmt.Sprintf("Precondition failed: %s in precondition: %s, %s in object meta: %s", what, want, what, is))
		}
		return services.Conflict(current.Key.Group, t.Kind, current.Key.Name,
			fmt.Sprintf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", what, want, what, is, happened))
	}
	if p.UID != nil && string(*p.UID) != current.UID {
		return conflict("UID", string(*p.UID), current.UID, "deleted and then recreated")
	}
	if version := resource.FormatResourceVersion(current.Revision); p.ResourceVersion != nil && *p.ResourceVersion != version {
		return conflict("ResourceVersion", *p.ResourceVersion, version, "modified")
	}
	return nil
}

// CheckDeletable returns Forbidden (403) for the deletion of an object of the system.
func CheckDeletable(t *catalogue.Type, name string) error {
	if !slices.Contains(t.Behavior.Undeletable, name) {
		return nil
	}
	return services.Forbidden(t.Group, t.Resource, name, "this is a system priority class and cannot be deleted")
}

// PrepareDelete marks an object as being deleted: it sets the deletion timestamp, the grace
// period and the finalizers of the propagation policy. While a grace period runs, another
// deletion changes nothing unless it requests a shorter one, nor does it anything of a namespace that is
// terminating. Finished reports whether the object can then be removed.
func (w Write) PrepareDelete(obj map[string]any, options *metav1.DeleteOptions) {
	meta := Metadata(obj)
	first := !Deleting(obj)
	if !first && heldBySpec(w.Type, obj) {
		return
	}
	if first && w.Type.Behavior.DefinesTypes {
		// The objects go first: the propagation policy has no effect.
		meta["deletionTimestamp"] = w.Now.UTC().Format(time.RFC3339)
		w.Definitions.MarkTerminating(obj, w.Now)
		return
	}
	if before, _ := number(meta["deletionGracePeriodSeconds"]); !first && before > 0 {
		if !w.shorten(meta, before, options.GracePeriodSeconds) {
			return
		}
	} else {
		grace := int64(0)
		if first {
			grace = w.grace(obj, options)
			meta["deletionTimestamp"] = w.Now.Add(time.Duration(grace) * time.Second).UTC().Format(time.RFC3339)
		}
		meta["deletionGracePeriodSeconds"] = grace
	}
	if generation, _ := number(meta["generation"]); first && generation > 0 && !w.Type.Behavior.KeepGenerationOnDelete {
		meta["generation"] = generation + 1
	}
	w.propagate(meta, options)
	if w.Type.Behavior.NoGracePeriod {
		delete(meta, "deletionGracePeriodSeconds")
	}
	w.run(w.Type.Behavior.PrepareDelete, obj, nil)
}

// shorten sets a requested grace period if it is shorter than the one that runs, and the deletion
// timestamp accordingly, which does not move into the past. It reports whether it is shorter.
func (w Write) shorten(meta map[string]any, before int64, requested *int64) bool {
	if requested == nil {
		return false
	}
	grace := *requested
	if grace < 0 {
		grace = 1
	}
	ends, err := time.Parse(time.RFC3339, text(meta["deletionTimestamp"]))
	if err != nil || grace >= before {
		return false
	}
	ends = ends.Add(time.Duration(grace-before) * time.Second)
	if ends.Before(w.Now) {
		// Who ends the object is still to remove it, unless it is to be removed now.
		ends, grace = w.Now, min(grace, 1)
	}
	meta["deletionTimestamp"], meta["deletionGracePeriodSeconds"] = ends.UTC().Format(time.RFC3339), grace
	return true
}

// grace returns the grace period in seconds; 0 for most kinds.
func (w Write) grace(obj map[string]any, options *metav1.DeleteOptions) int64 {
	grace, ok := w.Functions.Grace[w.Type.Behavior.GracePeriod]
	if !ok {
		return 0
	}
	return grace(obj, options.GracePeriodSeconds)
}

// propagate sets the finalizers for the propagation policy.
func (w Write) propagate(meta map[string]any, options *metav1.DeleteOptions) {
	var policy metav1.DeletionPropagation
	finalizers, _ := meta["finalizers"].([]any)
	switch {
	case w.Type.Behavior.NoDependents:
	case options.PropagationPolicy != nil:
		policy = *options.PropagationPolicy
	case options.OrphanDependents != nil && *options.OrphanDependents: //nolint:staticcheck // clients of 1.21 still send it
		policy = metav1.DeletePropagationOrphan
	case options.OrphanDependents != nil: //nolint:staticcheck // as above
		policy = metav1.DeletePropagationBackground
	case !slices.Contains(w.Type.Behavior.OrphanDependents, w.Type.Version) || slices.ContainsFunc(finalizers, isPropagationFinalizer):
		return
	default:
		policy = metav1.DeletePropagationOrphan
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), isPropagationFinalizer)
	switch policy {
	case metav1.DeletePropagationForeground:
		kept = append(kept, metav1.FinalizerDeleteDependents)
	case metav1.DeletePropagationOrphan:
		kept = append(kept, metav1.FinalizerOrphanDependents)
	}
	if len(kept) > 0 {
		meta["finalizers"] = kept
	} else {
		delete(meta, "finalizers")
	}
}

// isPropagationFinalizer reports whether a finalizer belongs to a propagation policy.
func isPropagationFinalizer(finalizer any) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// orphansWarned is the first release that warns of dependents that are orphaned by default.
var orphansWarned, _ = release.Of("1.23")

// OrphanWarnings returns the warning about a deletion that orphans the dependents because its
// options do not say what happens to them.
func OrphanWarnings(t *catalogue.Type, o *metav1.DeleteOptions, served release.Release) []string {
	b := t.Behavior
	stated := o.PropagationPolicy != nil || o.OrphanDependents != nil //nolint:staticcheck // clients of 1.21 still send it
	if stated || b.OrphanWarning == "" || !slices.Contains(b.OrphanDependents, t.Version) || served.Before(orphansWarned) {
		return nil
	}
	return []string{b.OrphanWarning}
}
