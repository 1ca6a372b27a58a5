package crd_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/schemas"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	randomSeed    = flag.Uint64("schema-seed", 1, "first seed of the random schemas")
	randomSchemas = flag.Int("schemas", 500, "number of random schemas")
)

// TestRandomSchemas: random objects of random structural schemas are pruned, defaulted and validated as the
// library does that kube-apiserver is made of. A failure names its seed: -args -schema-seed N -schemas 1.
func TestRandomSchemas(t *testing.T) {
	base := later(t, vocabulary.K8s())
	for i := range *randomSchemas {
		seed := *randomSeed + uint64(i) //nolint:gosec // not negative
		g := schemas.New(seed)
		schema := map[string]any{"type": "object", "properties": map[string]any{"spec": g.Schema(schemas.Depth)}}
		reference, ok := newReference(t, schema)
		if !ok {
			continue
		}
		text, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		w := base.add(t, base.widgets(t, string(text)))
		for range 12 {
			spec, err := json.Marshal(g.Value(schema["properties"].(map[string]any)["spec"].(map[string]any), schemas.Depth))
			if err != nil {
				t.Fatal(err)
			}
			want, causes := reference.write(t, spec)
			got, refused := w.write(t, `{"spec":`+string(spec)+`}`)
			if problem := differs(want, causes, got, refused); problem != "" {
				t.Fatalf("seed %d: schema %s\nspec %s\n%s", seed, text, spec, problem)
			}
		}
	}
}

// differs says how a result differs from the reference; "" if it does not.
func differs(want map[string]any, causes []string, got map[string]any, refused error) string {
	var found []string
	if s := services.AsStatus(refused); refused != nil && s.Details != nil {
		for _, c := range s.Details.Causes {
			found = append(found, c.Field+": "+c.Message)
		}
	}
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, causes) {
		return fmt.Sprintf("causes\n  %s\nwant\n  %s", strings.Join(found, "\n  "), strings.Join(causes, "\n  "))
	}
	if refused == nil && !tree.Equal(want["spec"], got["spec"]) {
		return fmt.Sprintf("stored %v\nwant   %v", got["spec"], want["spec"])
	}
	return ""
}

// reference does what kube-apiserver does to a custom object that is created.
type reference struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
}

// newReference returns false for a schema that definitions may not have.
func newReference(t *testing.T, schema map[string]any) (r reference, ok bool) {
	t.Helper()
	raw, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var v1 apiextensionsv1.JSONSchemaProps
	var props apiextensions.JSONSchemaProps
	if err := json.Unmarshal(raw, &v1); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&v1, &props, nil); err != nil {
		t.Fatal(err)
	}
	if r.structural, err = structuralschema.NewStructural(&props); err != nil || len(structuralschema.ValidateStructural(nil, r.structural)) > 0 {
		return r, false
	}
	if invalid, err := defaulting.ValidateDefaults(t.Context(), nil, r.structural, true, true); err != nil || len(invalid) > 0 {
		return r, false
	}
	if r.validator, _, err = validation.NewSchemaValidator(&props); err != nil {
		t.Fatal(err)
	}
	return r, true
}

// write returns the object that is stored, and the causes for which it is refused.
func (r reference) write(t *testing.T, spec []byte) (object map[string]any, causes []string) {
	t.Helper()
	text := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"default"},"spec":` + string(spec) + `}`
	if err := utiljson.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	pruning.Prune(object, r.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
	defaulting.Default(object, r.structural)
	for _, e := range append(validation.ValidateCustomResource(nil, object, r.validator), listtype.ValidateListSetsAndMaps(nil, r.structural, object)...) {
		causes = append(causes, e.Field+": "+e.ErrorBody())
	}
	slices.Sort(causes)
	return object, slices.Compact(causes)
}
