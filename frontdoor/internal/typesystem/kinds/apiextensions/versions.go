package apiextensions

import (
	"reflect"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// perVersion are the fields that a definition has per version, with the names of the fields
// that v1beta1 has in common for all versions.
var perVersion = map[string]string{"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"}

const columns = "additionalPrinterColumns"

func definitionFromV1beta1(_ vocabulary.Vocabulary, definition map[string]any) {
	edit.Member(definition, "spec", func(spec map[string]any) {
		name, _ := edit.Take(spec, "version")
		if len(tree.List(spec, "versions")) == 0 && name != nil && name != "" {
			spec["versions"] = []any{map[string]any{"name": name, "served": true, "storage": true}}
		}
		for field, shared := range perVersion {
			value, ok := edit.Take(spec, shared)
			if !ok {
				continue
			}
			edit.Items(spec, "versions", func(version map[string]any) {
				if version[field] == nil {
					version[field] = value
				}
			})
		}
		edit.Items(spec, "versions", func(version map[string]any) {
			edit.Items(version, columns, func(column map[string]any) { edit.Rename(column, "JSONPath", "jsonPath") })
		})
		edit.Member(spec, "conversion", conversionFromV1beta1)
		setDefaults(spec)
	})
}

// setDefaults sets the defaults of v1beta1 where v1 has another default or requires a
// value.
func setDefaults(spec map[string]any) {
	for field, value := range map[string]any{"scope": "Namespaced", "preserveUnknownFields": true, "conversion": map[string]any{"strategy": "None"}} {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	if spec["preserveUnknownFields"] == false {
		delete(spec, "preserveUnknownFields")
	}
	edit.Member(spec, "names", func(names map[string]any) {
		kind, _ := names["kind"].(string)
		for field, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
			if given, _ := names[field].(string); given == "" && kind != "" {
				names[field] = value
			}
		}
	})
}

// conversionFromV1beta1 moves the webhook's fields into the field webhook.
func conversionFromV1beta1(conversion map[string]any) {
	if conversion["strategy"] == nil || conversion["strategy"] == "" {
		conversion["strategy"] = "None"
	}
	webhook := map[string]any{}
	if config, ok := edit.Take(conversion, "webhookClientConfig"); ok {
		webhook["clientConfig"] = config
	}
	if versions, ok := edit.Take(conversion, "conversionReviewVersions"); ok {
		webhook["conversionReviewVersions"] = versions
	} else if conversion["strategy"] == "Webhook" {
		webhook["conversionReviewVersions"] = []any{"v1beta1"}
	}
	if len(webhook) > 0 {
		conversion["webhook"] = webhook
	}
}

func conversionToV1beta1(conversion map[string]any) {
	webhook, _ := edit.Take(conversion, "webhook")
	if webhook, ok := webhook.(map[string]any); ok {
		for from, to := range map[string]string{"clientConfig": "webhookClientConfig", "conversionReviewVersions": "conversionReviewVersions"} {
			if value, ok := webhook[from]; ok {
				conversion[to] = value
			}
		}
	}
}

// definitionToV1beta1 moves what is equal in all versions to the common fields.
func definitionToV1beta1(_ vocabulary.Vocabulary, definition map[string]any) {
	edit.Member(definition, "spec", func(spec map[string]any) {
		edit.Items(spec, "versions", func(version map[string]any) {
			edit.Items(version, columns, func(column map[string]any) { edit.Rename(column, "jsonPath", "JSONPath") })
		})
		versions := tree.List(spec, "versions")
		for field, shared := range perVersion {
			if value, ok := commonValue(versions, field); ok {
				spec[shared] = value
				edit.Items(spec, "versions", func(version map[string]any) { delete(version, field) })
			}
		}
		if len(versions) > 0 {
			first, _ := versions[0].(map[string]any)
			spec["version"] = first["name"]
		}
		if spec["preserveUnknownFields"] == nil {
			spec["preserveUnknownFields"] = false
		}
		edit.Member(spec, "conversion", conversionToV1beta1)
	})
}

// commonValue returns the value that a field has in all versions.
func commonValue(versions []any, field string) (common any, ok bool) {
	for i, item := range versions {
		version, _ := item.(map[string]any)
		value := version[field]
		if value == nil || i > 0 && !reflect.DeepEqual(value, common) {
			return nil, false
		}
		common = value
	}
	return common, len(versions) > 0
}
