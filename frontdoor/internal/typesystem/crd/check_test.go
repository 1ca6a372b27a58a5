package crd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestCheck(t *testing.T) {
	w := newWorld(t, vocabulary.Platform())
	for name, c := range map[string]struct {
		schema string
		change func(map[string]any)
		want   string
	}{
		"sound":                {schema: `{type: object}`},
		"no type":              {schema: `{properties: {a: {type: string}}}`, want: "spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"},
		"wrong type at root":   {schema: `{type: string}`, want: "must be object at the root"},
		"no type of a field":   {schema: `{type: object, properties: {a: {}}}`, want: "openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"},
		"array without items":  {schema: `{type: object, properties: {a: {type: array}}}`, want: "properties[a].items: Required value"},
		"unknown type":         {schema: `{type: text}`, want: "must be object at the root"},
		"dialect":              {schema: `{type: object, properties: {a: {type: string, $schema: x}}}`, want: "spec.validation.openAPIV3Schema: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"},
		"dialect alone":        {schema: `{$schema: x}`, want: "OpenAPIV3Schema 'schema' is not supported"},
		"unknown list type":    {schema: `{type: object, properties: {a: {type: object, x-list-type: b}}}`, want: "properties[a].type: Invalid value: \"object\": must be array if x-platform-list-type is specified"},
		"no definitions":       {schema: `{type: object, definitions: {}, patternProperties: {}}`},
		"default of all":       {schema: `{type: object, default: {}}`, want: "openAPIV3Schema.default.apiVersion: Required value"},
		"whole default":        {schema: `{type: object, default: {apiVersion: example.com/v1, kind: Widget}}`},
		"reference":            {schema: `{type: object, $ref: "#/x"}`, want: "$ref is not supported"},
		"unique items":         {schema: `{type: object, properties: {a: {type: array, uniqueItems: true, items: {type: string}}}}`, want: "uniqueItems"},
		"bad pattern":          {schema: `{type: object, properties: {a: {type: string, pattern: "("}}}`, want: "valid regular expression"},
		"type in condition":    {schema: `{type: object, properties: {a: {type: string, anyOf: [{type: string}]}}}`, want: "must be empty to be structural"},
		"only in condition":    {schema: `{type: object, anyOf: [{properties: {a: {minLength: 1}}}]}`, want: "openAPIV3Schema.properties[a]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[0].properties[a]"},
		"metadata":             {schema: `{type: object, properties: {metadata: {type: object, properties: {labels: {type: object}}}}}`, want: "name and generateName"},
		"list keys":            {schema: `{type: object, properties: {a: {type: array, x-list-type: map, x-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}}}`, want: "must have a default or be a required property"},
		"default too large":    {schema: `{type: object, properties: {a: {type: integer, maximum: 3, default: 5}}}`, want: "properties[a].default: Invalid value: 5"},
		"default unknown":      {schema: `{type: object, properties: {a: {type: object, default: {b: 1}}}}`, want: "must not have unknown fields"},
		"extensions":           {schema: `{type: object, properties: {a: {x-int-or-string: true, x-preserve-unknown-fields: true}}}`, want: "x-platform-int-or-string is true"},
		"name":                 {schema: `{type: object}`, change: func(m map[string]any) { set(m, "other", "metadata", "name") }, want: "metadata.name: Invalid value"},
		"group":                {schema: `{type: object}`, change: func(m map[string]any) { set(m, "single", "spec", "group") }, want: "at least one dot"},
		"protected":            {schema: `{type: object}`, change: func(m map[string]any) { set(m, "x.platform.io", "spec", "group") }, want: "metadata.annotations[api-approved.platform.io]: Required value"},
		"scope":                {schema: `{type: object}`, change: func(m map[string]any) { set(m, "", "spec", "scope") }, want: "spec.scope: Required value"},
		"keeps all":            {schema: `{type: object}`, change: func(m map[string]any) { set(m, true, "spec", "preserveUnknownFields") }, want: "spec.preserveUnknownFields: Invalid value: true: cannot set to true"},
		"kinds":                {schema: `{type: object}`, change: func(m map[string]any) { set(m, "Widget", "spec", "names", "listKind") }, want: "kind and listKind may not be the same"},
		"conversion":           {schema: `{type: object}`, change: func(m map[string]any) { set(m, "Webhook", "spec", "conversion", "strategy") }, want: "required when strategy is set to Webhook"},
		"two paths":            {schema: `{type: object}`, change: secondSchema(`{type: string}`), want: "spec.versions[1].schema.openAPIV3Schema.type: Invalid value: \"string\": must be object at the root"},
		"nullable root":        {schema: `{type: object, nullable: true}`, want: "openAPIV3Schema.nullable: Forbidden"},
		"null":                 {schema: `{type: object, properties: {a: {type: "null"}}}`, want: "use nullable as an alternative"},
		"only in a field":      {schema: `{type: object, properties: {a: {type: object, anyOf: [{properties: {b: {minLength: 1}}}]}}}`},
		"metadata text":        {schema: `{type: object, properties: {metadata: {type: object, description: x}}}`, want: "name and generateName"},
		"metadata default":     {schema: `{type: object, properties: {metadata: {type: object, default: {}}}}`, want: "properties[metadata].default: Forbidden"},
		"default not whole":    {schema: `{type: object, properties: {a: {type: object, default: {}, required: [b], properties: {b: {type: string, default: x}}}}}`, want: "properties[a].default.b: Required value"},
		"two keys":             {schema: `{type: object, properties: {a: {type: array, x-list-type: map, x-list-map-keys: [k, k], items: {type: object, required: [k], properties: {k: {type: string}}}}}}`, want: "must not contain duplicate entries"},
		"keys of no map":       {schema: `{type: object, properties: {a: {type: array, x-list-map-keys: [k], items: {type: string}}}}`, want: "list-type: Required value: must be map"},
		"review twice":         {schema: `{type: object}`, change: converts(map[string]any{"url": "https://a"}, "v1", "v1"), want: "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v1\": duplicate version"},
		"unknown review":       {schema: `{type: object}`, change: converts(map[string]any{"url": "https://a"}, "v2"), want: "must include at least one of v1, v1beta1"},
		"no place":             {schema: `{type: object}`, change: converts(map[string]any{}, "v1"), want: "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"},
		"plain place":          {schema: `{type: object}`, change: converts(map[string]any{"url": "http://a"}, "v1"), want: "'https' is the only allowed URL scheme"},
		"path of a service":    {schema: `{type: object}`, change: converts(map[string]any{"service": map[string]any{"name": "a", "namespace": "b", "path": "x"}}, "v1"), want: "must start with a '/'"},
		"webhook":              {schema: `{type: object}`, change: converts(map[string]any{"service": map[string]any{"name": "a", "namespace": "b", "path": "/x"}}, "v2", "v1")},
		"wrong approval":       {schema: `{type: object}`, change: approvedBy("someone"), want: "Invalid value: \"someone\": protected groups must have approval annotation"},
		"approved":             {schema: `{type: object}`, change: approvedBy("https://example.com/1")},
		"two stored":           {schema: `{type: object}`, change: secondVersion(true), want: "exactly one version marked as storage version"},
		"same version twice":   {schema: `{type: object}`, change: func(m map[string]any) { secondVersion(false)(m); versionsOf(m)[1]["name"] = "v1" }, want: "spec.versions: Invalid value: [\"v1\",\"v1\"]: must contain unique version names"},
		"stored twice":         {schema: `{type: object}`, change: func(m map[string]any) { secondVersion(true)(m); versionsOf(m)[1]["name"] = "v1" }, want: "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v1"},
		"kept, not structural": {schema: `{type: object, properties: {a: {type: text, x-preserve-unknown-fields: false}}}`, want: "properties[a].x-platform-preserve-unknown-fields: Invalid value: false: must be true or undefined"},
		"type beside status":   {schema: `{type: array, items: {type: string}}`, change: withStatus, want: `openAPIV3Schema.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled`},
		"default of a type":    {schema: `{type: object, properties: {a: {type: object, default: {b: [x]}, properties: {b: {type: array, items: {type: integer}}}}}}`, want: `properties[a].default.b[0]: Invalid value: "string": b[0] in body must be of type integer: "string"`},
		"default of another":   {schema: `{type: object, properties: {a: {type: integer, default: x}}}`, want: `properties[a].default: Invalid value: "string":  in body must be of type integer: "string"`},
		"two versions":         {schema: `{type: object}`, change: secondVersion(false)},
	} {
		t.Run(name, func(t *testing.T) {
			definition := w.widgets(t, c.schema)
			if c.change != nil {
				c.change(definition)
			}
			w.prepare(t, definition)
			err := w.rules().Check(definition, nil)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var status *services.Status
			if !errors.As(err, &status) || status.Code != 422 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func set(m map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(m, value, path...); err != nil {
		panic(err)
	}
}

func secondVersion(storage bool) func(map[string]any) {
	return func(m map[string]any) {
		versions, _, _ := unstructured.NestedSlice(m, "spec", "versions")
		second := map[string]any{"name": "v1beta1", "served": true, "storage": storage, "deprecated": true, "schema": versions[0].(map[string]any)["schema"]}
		set(m, append(versions, second), "spec", "versions")
	}
}

// versionsOf returns the versions of a definition.
func versionsOf(m map[string]any) (versions []map[string]any) {
	for _, version := range m["spec"].(map[string]any)["versions"].([]any) {
		versions = append(versions, version.(map[string]any))
	}
	return versions
}

func withStatus(m map[string]any) {
	versionsOf(m)[0]["subresources"] = map[string]any{"status": map[string]any{}}
}

func secondSchema(schema string) func(map[string]any) {
	return func(m map[string]any) {
		secondVersion(false)(m)
		versions := m["spec"].(map[string]any)["versions"].([]any)
		versions[1].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": yamlOf(schema)}
	}
}

func yamlOf(text string) (m map[string]any) {
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	return m
}

func converts(place map[string]any, reviews ...any) func(map[string]any) {
	return func(m map[string]any) {
		set(m, map[string]any{"strategy": "Webhook", "webhook": map[string]any{"clientConfig": place, "conversionReviewVersions": reviews}}, "spec", "conversion")
	}
}

func approvedBy(who string) func(map[string]any) {
	return func(m map[string]any) {
		set(m, "x.platform.io", "spec", "group")
		set(m, "widgets.x.platform.io", "metadata", "name")
		set(m, map[string]any{"api-approved.platform.io": who}, "metadata", "annotations")
	}
}

func TestTwoVersions(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	definition := w.widgets(t, `{type: object}`)
	secondVersion(false)(definition)
	w = w.add(t, definition)
	stored := w.lookup(t)
	old, ok := w.types.Lookup("example.com", "v1beta1", "widgets")
	if !ok || old.Stored != stored || old.Key != stored.Key {
		t.Errorf("second version: %+v", old)
	}
	if got := old.DeprecationWarning(); got != "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget" {
		t.Error(got)
	}
	group, _ := w.types.Group("example.com")
	if group.Versions[0].Version != "v1" {
		t.Error("the preferred version is not the stable one")
	}
}

// TestCheckWithFound: the errors that the schema of definitions has found are reported together with
// those of the definition.
func TestCheckWithFound(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	definition := w.widgets(t, `{type: object}`)
	set(definition, "single", "spec", "group")
	found := services.StatusCause{Reason: services.CauseInvalid, Field: "metadata.name", Message: "Invalid value"}
	check := w.rules().Check(definition, nil, found)
	var status *services.Status
	if !errors.As(check, &status) || len(status.Details.Causes) < 2 || !strings.Contains(check.Error(), "metadata.name: Invalid value") {
		t.Errorf("got %v", check)
	}
}

func TestImmutable(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	old := w.widgets(t, `{type: object}`)
	w.claims(now).Establish(old, nil)
	changed := w.widgets(t, `{type: object}`)
	changed["status"] = old["status"]
	set(changed, "Cluster", "spec", "scope")
	set(changed, "Gadget", "spec", "names", "kind")
	err := w.rules().Check(changed, old)
	if err == nil || !strings.Contains(err.Error(), "spec.scope") || !strings.Contains(err.Error(), "spec.names.kind") {
		t.Error(err)
	}
}

func TestEstablish(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	first := w.widgets(t, `{type: object}`)
	w.claims(now).Establish(first, nil)
	compiled, err := crd.Compile(first, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil || !compiled.Established {
		t.Fatal(compiled, err)
	}
	second := w.widgets(t, `{type: object}`)
	set(second, "gadgets.example.com", "metadata", "name")
	set(second, "gadgets", "spec", "names", "plural")
	w.claims(now, compiled).Establish(second, nil)
	rival, err := crd.Compile(second, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil || rival.Established {
		t.Errorf("the names of another definition were accepted: %v %v", second["status"], err)
	}
	w.claims(now.Add(time.Hour)).Establish(second, nil)
	if again, err := crd.Compile(second, crd.Setting{Types: w.types, Vocabulary: w.vocabulary}); err != nil || !again.Established {
		t.Errorf("names that are free again were not accepted: %v", second["status"])
	}
	crd.MarkTerminating(first, w.vocabulary, now)
	if finalizers, _, _ := unstructured.NestedStringSlice(first, "metadata", "finalizers"); len(finalizers) != 1 || finalizers[0] != w.vocabulary.DefinitionFinalizer() {
		t.Errorf("finalizers: %v", finalizers)
	}
	set(first, "2026-01-02T03:04:05Z", "metadata", "deletionTimestamp")
	going, err := crd.Compile(first, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
	if err != nil || going.Types[0].Can("create") || !going.Types[0].Can("delete") || !going.Types[0].Can("patch") {
		t.Error("objects of a definition that is going can be made", err)
	}
}
