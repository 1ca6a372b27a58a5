package core

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/tree"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// namespaceNameLabel labels a namespace with its name, for selectors.
func namespaceNameLabel(m map[string]any, v vocabulary.Vocabulary) {
	metadata := rules.Object(m, "metadata")
	if name := rules.Text(metadata, "name"); name != "" {
		rules.Complete(metadata, map[string]any{"labels": map[string]any{}})
		if labels := rules.Object(metadata, "labels"); labels != nil {
			labels[v.Qualified("", "metadata.name")] = name
		}
	}
}

// namespaceFinalizers: a namespace is held by the service itself, or by those who have
// a domain.
func namespaceFinalizers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, name := range rules.Texts(m, "finalizers") {
		if !strings.Contains(name, "/") && !c.OwnFinalizer(name) {
			c.Invalid(at.Field("finalizers").Item(i), name, "name is neither a standard finalizer name nor is it fully qualified")
		}
	}
}

// namespacePhase: a namespace is active until it is deleted.
func namespacePhase(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if c.Subresource != "status" {
		return
	}
	phase, at := rules.Text(rules.Object(m, "status"), "phase"), at.Field("status").Field("Phase")
	switch deleting := rules.Object(m, "metadata")["deletionTimestamp"] != nil; {
	case deleting && phase != "Terminating":
		c.Invalid(at, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
	case !deleting && phase != "Active":
		c.Invalid(at, phase, "may only be 'Active' if `deletionTimestamp` is empty")
	}
}

// holdNamespace holds a namespace until its contents are gone.
func holdNamespace(w kinds.Write, obj, _ map[string]any) {
	spec := tree.Object(obj, "spec")
	held, _ := spec["finalizers"].([]any)
	if name := any(w.Vocabulary.NamespaceFinalizer); !slices.Contains(held, name) {
		spec["finalizers"] = append(slices.Clone(held), name)
	}
}

// keepNamespaceFinalizers: what holds a namespace changes on a path of its own, which
// changes nothing else.
func keepNamespaceFinalizers(w kinds.Write, obj, old map[string]any) {
	if w.Subresource == "finalize" {
		kinds.Keep(obj, old, "status")
		return
	}
	spec := tree.Object(obj, "spec")
	kinds.Keep(spec, tree.Object(old, "spec"), "finalizers")
	if len(spec) == 0 {
		delete(obj, "spec")
	}
}

// terminateNamespace says in the status that the contents are being deleted.
func terminateNamespace(_ kinds.Write, obj, _ map[string]any) {
	tree.Object(obj, "status")["phase"] = "Terminating"
}
