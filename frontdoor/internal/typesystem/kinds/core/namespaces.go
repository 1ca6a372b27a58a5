package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/tree"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// namespaceNameLabel sets the label with the name of a Namespace.
func namespaceNameLabel(m map[string]any, v vocabulary.Vocabulary) {
	metadata := rules.Object(m, "metadata")
	if name := rules.Text(metadata, "name"); name != "" {
		rules.Complete(metadata, map[string]any{"labels": map[string]any{}})
		if labels := rules.Object(metadata, "labels"); labels != nil {
			labels[v.Qualified("", "metadata.name")] = name
		}
	}
}

// namespaceFinalizers checks that finalizers are the service's own or have a domain. As in
// Kubernetes, only errors of the subresource finalize have the index.
func namespaceFinalizers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, name := range rules.Texts(m, "finalizers") {
		at := at.Field("finalizers")
		if c.Subresource == "finalize" {
			at = at.Item(i)
		}
		for _, problem := range validation.IsQualifiedName(name) {
			c.Invalid(at, name, problem)
		}
		if !strings.Contains(name, "/") && !c.OwnFinalizer(name) {
			c.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified")
		}
	}
}

// namespacePhase checks that the phase is Terminating if and only if the Namespace is being
// deleted.
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

// addNamespaceFinalizer adds the finalizer that keeps a Namespace until its contents are deleted.
func addNamespaceFinalizer(w kinds.Write, obj, _ map[string]any) {
	spec := tree.Object(obj, "spec")
	held, _ := spec["finalizers"].([]any)
	if name := any(w.Vocabulary.NamespaceFinalizer); !slices.Contains(held, name) {
		spec["finalizers"] = append(slices.Clone(held), name)
	}
}

// keepNamespaceFinalizers allows only the subresource finalize to change spec.finalizers,
// and that to change no status.
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

// terminateNamespace sets the phase of a deleted Namespace.
func terminateNamespace(_ kinds.Write, obj, _ map[string]any) {
	tree.Object(obj, "status")["phase"] = "Terminating"
}
