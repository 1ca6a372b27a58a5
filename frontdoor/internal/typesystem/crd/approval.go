package crd

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// approval is the condition that follows from the approval annotation of a definition.
type approval struct{ state, reason, message string }

// isProtected reports whether a group belongs to the project's own domains.
func isProtected(group string, v vocabulary.Vocabulary) bool {
	for _, domain := range []string{strings.TrimPrefix(v.Group("."), "."), v.Domain} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

func approvalAnnotation(v vocabulary.Vocabulary) string { return "api-approved." + v.Domain }

// approvalOf evaluates the annotation.
func approvalOf(meta map[string]any, v vocabulary.Vocabulary) approval {
	name := approvalAnnotation(v)
	given := tree.Text(tree.Child(meta, "annotations"), name)
	page, err := url.Parse(given)
	switch {
	case given == "":
		return approval{"False", "MissingAnnotation", "protected groups must have approval annotation " + strconv.Quote(name) +
			", see https://github.com/kubernetes/enhancements/pull/1111"}
	case strings.HasPrefix(given, "unapproved"):
		return approval{"False", "UnapprovedAnnotation", "not approved: " + strconv.Quote(given)}
	case err == nil && page.Scheme != "" && page.Host != "":
		return approval{"True", "ApprovedAnnotation", "approved in " + page.String()}
	}
	return approval{"False", "InvalidAnnotation", "protected groups must have approval annotation " + strconv.Quote(name) +
		" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"}
}

// setApproval sets the approval condition of a definition in a protected group.
func setApproval(object, status map[string]any, v vocabulary.Vocabulary, stamp string) {
	if !isProtected(tree.Text(tree.Child(object, "spec"), "group"), v) {
		return
	}
	a := approvalOf(tree.Child(object, "metadata"), v)
	conditions.Set(status, conditions.New(v.ApprovalCondition, a.state, a.reason, a.message), stamp)
}

// approved validates the annotation, unless its evaluation has the same reason as before
// the update.
func (c *check) approved() {
	meta := tree.Child(c.object, "metadata")
	if !c.isV1 || !isProtected(tree.Text(c.spec, "group"), c.Vocabulary) {
		return
	}
	now := approvalOf(meta, c.Vocabulary)
	if c.old != nil && approvalOf(tree.Child(c.old, "metadata"), c.Vocabulary).reason == now.reason {
		return
	}
	at := (&field.Path{Name: "metadata"}).Field("annotations").Entry(approvalAnnotation(c.Vocabulary))
	switch now.reason {
	case "MissingAnnotation":
		c.Required(at, now.message)
	case "InvalidAnnotation":
		c.Invalid(at, tree.Text(tree.Child(meta, "annotations"), approvalAnnotation(c.Vocabulary)), now.message)
	}
}
