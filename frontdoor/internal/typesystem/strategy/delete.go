package strategy

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services/tree"
)

// PrepareDelete marks an object as deleting: the time, the grace that its kind
// gives, and the finalizers that stand for the treatment of its dependents. Whether
// anything still holds it, Finished tells. A second deletion may only shorten the
// grace.
func (w Write) PrepareDelete(obj map[string]any, options *metav1.DeleteOptions) {
	meta := Metadata(obj)
	first := !Deleting(obj)
	grace := w.grace(obj, options)
	if before, ok := number(meta["deletionGracePeriodSeconds"]); ok && Deleting(obj) {
		grace = min(grace, before)
	}
	if !Deleting(obj) || grace == 0 {
		at := w.Now
		if before, err := time.Parse(time.RFC3339, text(meta["deletionTimestamp"])); err == nil {
			at = before
		}
		if !Deleting(obj) {
			at = at.Add(time.Duration(grace) * time.Second)
		}
		meta["deletionTimestamp"] = at.UTC().Format(time.RFC3339)
	}
	meta["deletionGracePeriodSeconds"] = grace
	if generation, _ := number(meta["generation"]); first && generation > 0 && !w.isDefinition() {
		meta["generation"] = generation + 1
	}
	w.propagate(meta, options)
	switch {
	case w.Type.Key.String() == "namespaces":
		delete(meta, "deletionGracePeriodSeconds") // which only ends when it is empty
		tree.Object(obj, "status")["phase"] = "Terminating"
	case w.isDefinition():
		delete(meta, "deletionGracePeriodSeconds") // a definition is given none
		if first {
			crd.MarkTerminating(obj, w.Vocabulary, w.Now)
		}
	}
}

// isDefinition reports whether the objects are definitions of custom types.
func (w Write) isDefinition() bool {
	return w.Type.Key.String() == "customresourcedefinitions."+w.Vocabulary.Group("apiextensions.")
}

// grace returns the seconds that the object is given to end by itself. Only a pod
// on a node needs any.
func (w Write) grace(obj map[string]any, options *metav1.DeleteOptions) int64 {
	if w.Type.Key.String() != "pods" {
		return 0
	}
	node, _, _ := unstructured.NestedString(obj, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(obj, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	if options.GracePeriodSeconds != nil {
		return shortest(*options.GracePeriodSeconds)
	}
	if seconds, ok, _ := unstructured.NestedFieldNoCopy(obj, "spec", "terminationGracePeriodSeconds"); ok {
		if n, ok := number(seconds); ok {
			return shortest(n)
		}
	}
	return 30
}

// shortest takes less than none for as little as there is: a pod on a node is never
// gone by a mistake of the sign.
func shortest(seconds int64) int64 {
	if seconds < 0 {
		return 1
	}
	return seconds
}

// propagate sets the finalizers for the propagation policy.
func (w Write) propagate(meta map[string]any, options *metav1.DeleteOptions) {
	var policy metav1.DeletionPropagation
	finalizers, _ := meta["finalizers"].([]any)
	switch {
	case options.PropagationPolicy != nil:
		policy = *options.PropagationPolicy
	case options.OrphanDependents != nil && *options.OrphanDependents: //nolint:staticcheck // clients of 1.21 still send it
		policy = metav1.DeletePropagationOrphan
	case options.OrphanDependents != nil: //nolint:staticcheck // as above
		policy = metav1.DeletePropagationBackground
	case !w.orphansByDefault() || slices.ContainsFunc(finalizers, treatsDependents):
		return
	default:
		policy = metav1.DeletePropagationOrphan
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), treatsDependents)
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

// treatsDependents reports whether a finalizer stands for a propagation policy.
func treatsDependents(finalizer any) bool {
	return finalizer == metav1.FinalizerDeleteDependents || finalizer == metav1.FinalizerOrphanDependents
}

// orphansByDefault names the versions whose clients expect that dependents stay when
// the deletion does not say otherwise.
func (w Write) orphansByDefault() bool {
	switch w.Type.Key.String() {
	case "replicationcontrollers":
		return true
	case "jobs.batch":
		return w.Type.Version == "v1"
	case "cronjobs.batch":
		return w.Type.Version == "v1beta1"
	}
	return false
}

// ReturnsDeleted names the types whose deletion is answered with the object, as
// release 1.21 does.
func ReturnsDeleted(t *catalogue.Type) bool {
	switch t.Key.Group {
	case "":
		return slices.Contains([]string{"pods", "services", "serviceaccounts", "podtemplates", "resourcequotas",
			"persistentvolumes", "persistentvolumeclaims"}, t.Resource)
	case "policy":
		return t.Resource == "podsecuritypolicies"
	}
	return !t.Custom && slices.Contains([]string{"storageclasses", "csidrivers", "csinodes", "volumeattachments"}, t.Resource)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
