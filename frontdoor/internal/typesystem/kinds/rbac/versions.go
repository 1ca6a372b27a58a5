package rbac

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// In v1alpha1 a subject has an apiVersion. The later versions have its group, which users,
// groups and ServiceAccounts have anyway. The user * of v1alpha1 is everyone who is
// authenticated.

func bindingFromV1alpha1(v vocabulary.Vocabulary, binding map[string]any) {
	edit.Items(binding, "subjects", func(subject map[string]any) {
		version, _ := edit.Take(subject, "apiVersion")
		switch subject["kind"] {
		case "ServiceAccount":
		case "User", "Group":
			subject["apiGroup"] = v.Group("rbac.authorization.")
			if subject["kind"] == "User" && subject["name"] == "*" {
				subject["kind"], subject["name"] = "Group", "system:authenticated"
			}
		default:
			text, _ := version.(string)
			if group, _, ok := strings.Cut(text, "/"); ok {
				subject["apiGroup"] = group
			}
		}
	})
}

func bindingToV1alpha1(v vocabulary.Vocabulary, binding map[string]any) {
	edit.Items(binding, "subjects", func(subject map[string]any) {
		group, _ := edit.Take(subject, "apiGroup")
		if text, _ := group.(string); text != "" && text != v.Group("rbac.authorization.") {
			subject["apiVersion"] = text + "/"
			return
		}
		subjectVersion(subject, v)
	})
}

// subjectVersion sets the apiVersion of a subject that has none.
func subjectVersion(subject map[string]any, v vocabulary.Vocabulary) {
	if !rules.Empty(subject["apiVersion"]) {
		return
	}
	switch subject["kind"] {
	case "ServiceAccount":
		subject["apiVersion"] = "v1"
	case "User", "Group":
		subject["apiVersion"] = v.Group("rbac.authorization.") + "/v1alpha1"
	}
}

// subjectOfVersion validates a subject of v1alpha1.
func subjectOfVersion(c *rules.Check, m, _ map[string]any, at *field.Path) { subjectKind(c, m, at) }
