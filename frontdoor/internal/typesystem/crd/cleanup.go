package crd

import (
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// MarkTerminating prepares a definition whose deletion is requested: it adds a finalizer,
// which is removed when all objects of its types have been deleted, and the condition
// Terminating.
func MarkTerminating(object map[string]any, v vocabulary.Vocabulary, now time.Time) {
	meta := tree.Child(object, "metadata")
	if finalizers, _ := meta["finalizers"].([]any); !slices.Contains(finalizers, any(v.DefinitionFinalizer())) {
		meta["finalizers"] = append(slices.Clone(finalizers), v.DefinitionFinalizer())
	}
	conditions.Set(ownStatus(object), conditions.New(terminating, "True", "InstanceDeletionPending", "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"),
		now.UTC().Format(time.RFC3339))
}
