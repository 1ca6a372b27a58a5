package apiextensions

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// customNames defaults the names that follow from the kind.
func customNames(m map[string]any, _ vocabulary.Vocabulary) {
	names := rules.Object(m, "names")
	if kind := rules.Text(names, "kind"); kind != "" {
		rules.Complete(names, map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"})
	}
}

// customStored defaults status.storedVersions to the storage version.
func customStored(m map[string]any, _ vocabulary.Vocabulary) {
	status := rules.Object(m, "status")
	if kept, _ := status["storedVersions"].([]any); status == nil || len(kept) > 0 {
		return
	}
	for _, version := range rules.Objects(rules.Object(m, "spec"), "versions") {
		if version["storage"] == true {
			status["storedVersions"] = []any{rules.Text(version, "name")}
			return
		}
	}
}

// customVersions completes an old definition, which can have its only version in version or
// in versions.
func customVersions(m map[string]any, _ vocabulary.Vocabulary) {
	versions, version := rules.Objects(m, "versions"), rules.Text(m, "version")
	switch {
	case version == "" && len(versions) > 0:
		if first := rules.Text(versions[0], "name"); first != "" {
			m["version"] = first
		}
	case version != "" && len(versions) == 0:
		m["versions"] = []any{map[string]any{"name": version, "served": true, "storage": true}}
	}
}

// customWebhook removes a webhook that says nothing.
func customWebhook(m map[string]any, _ vocabulary.Vocabulary) {
	if webhook := rules.Object(m, "webhook"); webhook != nil && webhook["clientConfig"] == nil && len(rules.List(webhook, "conversionReviewVersions")) == 0 {
		delete(m, "webhook")
	}
}

// customItems removes items of a schema that are neither a schema nor a list: they have no type in
// the published document.
func customItems(m map[string]any, _ vocabulary.Vocabulary) {
	switch m["items"].(type) {
	case map[string]any, []any:
	default:
		delete(m, "items")
	}
}
