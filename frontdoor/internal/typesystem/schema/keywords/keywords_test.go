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
