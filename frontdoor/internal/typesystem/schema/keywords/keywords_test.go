package keywords

import (
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/release"
)

// TestTooFew: an error about too few parts shows how many there are, from release 1.36 on.
func TestTooFew(t *testing.T) {
	least := int64(2)
	s := &spec.Schema{SchemaProps: spec.SchemaProps{MinItems: &least, MinProperties: &least}}
	for _, c := range []struct {
		release release.Release
		value   any
		want    string
	}{
		{release.V136, []any{"a"}, "Invalid value: 1: a in body should have at least 2 items"},
		{release.V136, map[string]any{}, "Invalid value: 0: a in body should have at least 2 properties"},
		{release.V121, []any{"a"}, `Invalid value: ["a"]: a in body should have at least 2 items`},
	} {
		var errs field.Errors
		Compile(s, c.release).Valid(&errs, c.value, &field.Path{Name: "a"})
		if got := errs.Causes(); len(got) != 1 || got[0].Message != c.want {
			t.Errorf("%v: got %v, want %s", c.release, got, c.want)
		}
	}
}

// TestLimitsOfNumbers: whole limits of integers have all their digits, and a factor that is not positive is
// reported for each value.
func TestLimitsOfNumbers(t *testing.T) {
	large, none := 3e9, 0.0
	for _, c := range []struct {
		s     spec.SchemaProps
		value any
		want  string
	}{
		{spec.SchemaProps{Minimum: &large}, int64(4), "Invalid value: 4: a in body should be greater than or equal to 3000000000"},
		{spec.SchemaProps{Minimum: &large}, 4.5, "Invalid value: 4.5: a in body should be greater than or equal to 3e+09"},
		{spec.SchemaProps{MultipleOf: &large}, 2.5, "Invalid value: 2.5: a in body should be a multiple of 3e+09"},
		{spec.SchemaProps{Type: spec.StringOrArray{"integer"}, Minimum: &large}, int64(4), "Invalid value: 4: a in body should be greater than or equal to 3000000000"},
		{spec.SchemaProps{Minimum: &large, ExclusiveMinimum: true}, int64(4), "Invalid value: 4: a in body should be greater than 3000000000"},
		{spec.SchemaProps{Maximum: &large}, int64(1 << 40), "Invalid value: 1099511627776: a in body should be less than or equal to 3000000000"},
		{spec.SchemaProps{MultipleOf: &large}, int64(4), "Invalid value: 4: a in body should be a multiple of 3000000000"},
		{spec.SchemaProps{MultipleOf: &none}, int64(4), "Invalid value: 0: factor MultipleOf declared for a must be positive: 0"},
	} {
		var errs field.Errors
		Compile(&spec.Schema{SchemaProps: c.s}, release.V136).Valid(&errs, c.value, &field.Path{Name: "a"})
		if got := errs.Causes(); len(got) != 1 || got[0].Message != c.want {
			t.Errorf("%v: got %v, want %s", c.value, got, c.want)
		}
	}
}
