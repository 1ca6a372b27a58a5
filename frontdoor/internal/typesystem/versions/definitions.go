package versions

import (
	"reflect"
	"strings"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// perVersion are the fields that a definition has in each version, and in v1beta1
// may have once for all of them, by their names there.
var perVersion = map[string]string{"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"}

const columns = "additionalPrinterColumns"

func definitionToBest(_ vocabulary.Vocabulary, definition map[string]any) {
	changed(definition, "spec", func(spec map[string]any) {
		name, _ := take(spec, "version")
		if len(tree.List(spec, "versions")) == 0 && name != nil && name != "" {
			spec["versions"] = []any{map[string]any{"name": name, "served": true, "storage": true}}
		}
		for field, shared := range perVersion {
			value, ok := take(spec, shared)
			if !ok {
				continue
			}
			eachChanged(spec, "versions", func(version map[string]any) {
				if version[field] == nil {
					version[field] = value
				}
			})
		}
		eachChanged(spec, "versions", func(version map[string]any) {
			eachChanged(version, columns, func(column map[string]any) { rename(column, "JSONPath", "jsonPath") })
		})
		changed(spec, "conversion", conversionToBest)
		sayDefaults(spec)
	})
}

// sayDefaults says what v1beta1 means by what it leaves out, where v1 means
// something else or must say it.
func sayDefaults(spec map[string]any) {
	for field, value := range map[string]any{"scope": "Namespaced", "preserveUnknownFields": true, "conversion": map[string]any{"strategy": "None"}} {
		if spec[field] == nil {
			spec[field] = value
		}
	}
	if spec["preserveUnknownFields"] == false {
		delete(spec, "preserveUnknownFields")
	}
	changed(spec, "names", func(names map[string]any) {
		kind, _ := names["kind"].(string)
		for field, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
			if given, _ := names[field].(string); given == "" && kind != "" {
				names[field] = value
			}
		}
	})
}

// conversionToBest moves what is about the webhook below a field of its own.
func conversionToBest(conversion map[string]any) {
	if conversion["strategy"] == nil || conversion["strategy"] == "" {
		conversion["strategy"] = "None"
	}
	webhook := map[string]any{}
	if config, ok := take(conversion, "webhookClientConfig"); ok {
		webhook["clientConfig"] = config
	}
	if versions, ok := take(conversion, "conversionReviewVersions"); ok {
		webhook["conversionReviewVersions"] = versions
	} else if conversion["strategy"] == "Webhook" {
		webhook["conversionReviewVersions"] = []any{"v1beta1"}
	}
	if len(webhook) > 0 {
		conversion["webhook"] = webhook
	}
}

func conversionFromBest(conversion map[string]any) {
	webhook, _ := take(conversion, "webhook")
	if webhook, ok := webhook.(map[string]any); ok {
		for from, to := range map[string]string{"clientConfig": "webhookClientConfig", "conversionReviewVersions": "conversionReviewVersions"} {
			if value, ok := webhook[from]; ok {
				conversion[to] = value
			}
		}
	}
}

// definitionFromBest says once what all versions have alike.
func definitionFromBest(_ vocabulary.Vocabulary, definition map[string]any) {
	changed(definition, "spec", func(spec map[string]any) {
		eachChanged(spec, "versions", func(version map[string]any) {
			eachChanged(version, columns, func(column map[string]any) { rename(column, "jsonPath", "JSONPath") })
		})
		versions := tree.List(spec, "versions")
		for field, shared := range perVersion {
			if value, ok := alike(versions, field); ok {
				spec[shared] = value
				eachChanged(spec, "versions", func(version map[string]any) { delete(version, field) })
			}
		}
		if len(versions) > 0 {
			first, _ := versions[0].(map[string]any)
			spec["version"] = first["name"]
		}
		if spec["preserveUnknownFields"] == nil {
			spec["preserveUnknownFields"] = false
		}
		changed(spec, "conversion", conversionFromBest)
	})
}

// alike returns the value that a field has in all versions.
func alike(versions []any, field string) (common any, ok bool) {
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
