package custom

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
)

// hold adds the finalizer that waits for the objects of a definition, unless the definition is being deleted.
func hold(object map[string]any, v vocabulary.Vocabulary) {
	meta := child(object, "metadata")
	if meta == nil || meta["deletionTimestamp"] != nil {
		return
	}
	if finalizers, _ := meta["finalizers"].([]any); !slices.Contains(finalizers, any(v.DefinitionFinalizer())) {
		meta["finalizers"] = append(slices.Clone(finalizers), v.DefinitionFinalizer())
	}
}

// MarkTerminating sets the condition of a definition whose deletion was requested,
// so that its objects are taken away and no new ones are made.
func MarkTerminating(object map[string]any, now time.Time) {
	setCondition(ownStatus(object), condition(terminating, "True", "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"),
		now.UTC().Format(time.RFC3339))
}
