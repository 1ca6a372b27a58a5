package crd

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/approval"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// setApproval sets the approval condition of a definition in a protected group.
func setApproval(object, status map[string]any, v vocabulary.Vocabulary, stamp string) {
	if !approval.IsProtected(tree.Text(tree.Child(object, "spec"), "group"), v) {
		return
	}
	a := approval.Of(tree.Child(object, "metadata"), v)
	conditions.Set(status, conditions.New(v.ApprovalCondition, a.Status, a.Reason, a.Message), stamp)
}

// approved validates the annotation, unless its evaluation has the same reason as before
// the update.
func (c *check) approved() {
	meta := tree.Child(c.object, "metadata")
	if !c.isV1 || !approval.IsProtected(tree.Text(c.spec, "group"), c.Vocabulary) {
		return
	}
	now := approval.Of(meta, c.Vocabulary)
	if c.old != nil && approval.Of(tree.Child(c.old, "metadata"), c.Vocabulary).Reason == now.Reason {
		return
	}
	name := approval.Annotation(c.Vocabulary)
	at := (&field.Path{Name: "metadata"}).Field("annotations").Entry(name)
	switch now.Reason {
	case "MissingAnnotation":
		c.Required(at, now.Message)
	case "InvalidAnnotation":
		c.Invalid(at, tree.Text(tree.Child(meta, "annotations"), name), now.Message)
	}
}
