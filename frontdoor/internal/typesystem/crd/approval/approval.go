// Package approval evaluates the approval annotation that definitions in the project's own groups need.
package approval

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Approval is the condition that follows from the annotation of a definition.
type Approval struct{ Status, Reason, Message string }

// IsProtected reports whether a group belongs to the project's own domains.
func IsProtected(group string, v vocabulary.Vocabulary) bool {
	for _, domain := range []string{strings.TrimPrefix(v.Group("."), "."), v.Domain} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// Annotation returns the name of the annotation.
func Annotation(v vocabulary.Vocabulary) string { return "api-approved." + v.Domain }

// Of evaluates the annotation of a definition's metadata.
func Of(meta map[string]any, v vocabulary.Vocabulary) Approval {
	name := Annotation(v)
	given := tree.Text(tree.Child(meta, "annotations"), name)
	page, err := url.Parse(given)
	switch {
	case given == "":
		return Approval{"False", "MissingAnnotation", "protected groups must have approval annotation " + strconv.Quote(name) +
			", see https://github.com/kubernetes/enhancements/pull/1111"}
	case strings.HasPrefix(given, "unapproved"):
		return Approval{"False", "UnapprovedAnnotation", "not approved: " + strconv.Quote(given)}
	case err == nil && page.Scheme != "" && page.Host != "":
		return Approval{"True", "ApprovedAnnotation", "approved in " + page.String()}
	}
	return Approval{"False", "InvalidAnnotation", "protected groups must have approval annotation " + strconv.Quote(name) +
		" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"}
}
