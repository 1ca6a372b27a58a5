package convert

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
)

// definition converts a CustomResourceDefinition.
func definition(object map[string]any, version string) map[string]any {
	if version == "v1" {
		return DefinitionToV1(object)
	}
	return definitionFromV1(object)
}

// errNeedsWebhook says that the versions of a custom type differ in ways that only
// its webhook knows, which is not asked yet.
func errNeedsWebhook(object map[string]any, to *catalogue.Type) error {
	return fmt.Errorf("conversion of %s %s to %s needs the webhook of its definition, and conversion webhooks are not supported: "+
		"use the stored version", text(object, "apiVersion"), to.Kind, to.APIVersion())
}

// perVersion are the fields that v1 has in each version, and v1beta1 may have once
// for all of them, by their names there.
var perVersion = map[string]string{"schema": "validation", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns"}

// DefinitionToV1 returns a CustomResourceDefinition in version v1, with the defaults
// of v1beta1 filled in; one that is in v1 already is returned itself. The object is not changed; parts of
// it are shared with the result.
func DefinitionToV1(object map[string]any) map[string]any {
	group, isOld := strings.CutSuffix(text(object, "apiVersion"), "/v1beta1")
	if !isOld {
		return object
	}
	old := child(object, "spec")
	s := maps.Clone(old)
	if s == nil {
		s = map[string]any{}
	}
	for _, name := range []string{"version", "validation", "subresources", "additionalPrinterColumns"} {
		delete(s, name)
	}
	versions := children(old, "versions")
	if name := text(old, "version"); len(versions) == 0 && name != "" {
		versions = []map[string]any{{"name": name, "served": true, "storage": true}}
	}
	var list []any
	for _, version := range versions {
		list = append(list, versionToV1(version, old))
	}
	s["versions"] = list
	if s["scope"] == nil {
		s["scope"] = "Namespaced"
	}
	if s["preserveUnknownFields"] == nil {
		s["preserveUnknownFields"] = true
	} else if s["preserveUnknownFields"] == false {
		delete(s, "preserveUnknownFields")
	}
	s["conversion"] = conversionToV1(child(old, "conversion"))
	completeNames(s)
	return with(object, group+"/v1", s)
}

func with(object map[string]any, apiVersion string, spec map[string]any) map[string]any {
	converted := maps.Clone(object)
	converted["apiVersion"], converted["spec"] = apiVersion, spec
	return converted
}

// completeNames fills in the names that follow from the kind.
func completeNames(spec map[string]any) {
	names := maps.Clone(child(spec, "names"))
	kind := text(names, "kind")
	if kind == "" {
		return
	}
	for name, value := range map[string]string{"singular": strings.ToLower(kind), "listKind": kind + "List"} {
		if text(names, name) == "" {
			names[name] = value
		}
	}
	spec["names"] = names
}

func versionToV1(version, old map[string]any) map[string]any {
	converted := maps.Clone(version)
	if converted == nil {
		converted = map[string]any{}
	}
	for field, shared := range perVersion {
		if value, ok := old[shared]; ok && converted[field] == nil {
			converted[field] = value
		}
	}
	renameInColumns(converted, "JSONPath", "jsonPath")
	return converted
}

// renameInColumns renames a field of each additionalPrinterColumn.
func renameInColumns(m map[string]any, from, to string) {
	const field = "additionalPrinterColumns"
	if m[field] == nil {
		return
	}
	var list []any
	for _, column := range children(m, field) {
		renamed := maps.Clone(column)
		if value, ok := renamed[from]; ok {
			delete(renamed, from)
			renamed[to] = value
		}
		list = append(list, renamed)
	}
	m[field] = list
}

func conversionToV1(old map[string]any) map[string]any {
	if text(old, "strategy") == "" || old["strategy"] == "None" {
		return map[string]any{"strategy": "None"}
	}
	hook := map[string]any{"conversionReviewVersions": []any{"v1beta1"}}
	if versions, ok := old["conversionReviewVersions"]; ok {
		hook["conversionReviewVersions"] = versions
	}
	if config, ok := old["webhookClientConfig"]; ok {
		hook["clientConfig"] = config
	}
	return map[string]any{"strategy": old["strategy"], "webhook": hook}
}

// definitionFromV1 returns a CustomResourceDefinition in version v1beta1: what all
// versions have alike stands once, above them.
func definitionFromV1(object map[string]any) map[string]any {
	group, isV1 := strings.CutSuffix(text(object, "apiVersion"), "/v1")
	if !isV1 {
		return object
	}
	s := maps.Clone(child(object, "spec"))
	if s == nil {
		s = map[string]any{}
	}
	versions := children(s, "versions")
	var list []any
	for i, version := range versions {
		versions[i] = maps.Clone(version)
		renameInColumns(versions[i], "jsonPath", "JSONPath")
		list = append(list, versions[i])
	}
	for field, shared := range perVersion {
		if value, ok := alike(versions, field); ok {
			s[shared] = value
			for _, version := range versions {
				delete(version, field)
			}
		}
	}
	if len(versions) > 0 {
		s["version"], s["versions"] = text(versions[0], "name"), list
	}
	if s["preserveUnknownFields"] == nil {
		s["preserveUnknownFields"] = false
	}
	if conversion := child(s, "conversion"); conversion != nil {
		s["conversion"] = conversionFromV1(conversion)
	}
	return with(object, group+"/v1beta1", s)
}

// alike returns the value that a field has in all versions.
func alike(versions []map[string]any, field string) (any, bool) {
	if len(versions) == 0 || versions[0][field] == nil {
		return nil, false
	}
	for _, version := range versions[1:] {
		if !reflect.DeepEqual(version[field], versions[0][field]) {
			return nil, false
		}
	}
	return versions[0][field], true
}

func conversionFromV1(conversion map[string]any) map[string]any {
	old := map[string]any{"strategy": conversion["strategy"]}
	hook := child(conversion, "webhook")
	if config, ok := hook["clientConfig"]; ok {
		old["webhookClientConfig"] = config
	}
	if versions, ok := hook["conversionReviewVersions"]; ok {
		old["conversionReviewVersions"] = versions
	}
	return old
}

// Reading objects: what is absent, or of another type, reads as the zero value.

func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

func child(m map[string]any, name string) map[string]any {
	c, _ := m[name].(map[string]any)
	return c
}

func children(m map[string]any, name string) []map[string]any {
	list, _ := m[name].([]any)
	found := make([]map[string]any, len(list))
	for i, item := range list {
		found[i], _ = item.(map[string]any)
	}
	return found
}
