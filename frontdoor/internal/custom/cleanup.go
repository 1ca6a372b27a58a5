package custom

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Finalizer holds a definition until the objects of its types are gone.
func Finalizer(v vocabulary.Vocabulary) string {
	return "customresourcecleanup." + v.Group("apiextensions.")
}

// hold adds the finalizer, unless the definition is being deleted.
func hold(object map[string]any, v vocabulary.Vocabulary) {
	meta := child(object, "metadata")
	if meta == nil || meta["deletionTimestamp"] != nil {
		return
	}
	if finalizers, _ := meta["finalizers"].([]any); !slices.Contains(finalizers, any(Finalizer(v))) {
		meta["finalizers"] = append(slices.Clone(finalizers), Finalizer(v))
	}
}

// MarkTerminating sets the condition of a definition whose deletion was requested,
// so that its objects are taken away and no new ones are made.
func MarkTerminating(object map[string]any, now time.Time) {
	setCondition(ownStatus(object), condition(terminating, "True", "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"),
		now.UTC().Format(time.RFC3339))
}
