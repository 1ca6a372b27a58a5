package schema

import (
	"strings"
	"testing"
)

// TestStoredFields: unknown fields are kept where the stored object has them with the same
// value, and nowhere else.
func TestStoredFields(t *testing.T) {
	types, engine := newEngine(t)
	ty, _ := types.Lookup("batch", "v1", "jobs")
	const stored = `{metadata: {name: a}, spec: {later: {a: [1]}, template: {spec: {containers: [{name: a, image: b, later: x}]}}}}`
	for name, c := range map[string]struct {
		given, old string
		kept       int
	}{
		"the same":     {stored, stored, 2},
		"new object":   {stored, ``, 0},
		"changed":      {strings.Replace(stored, "[1]", "[2]", 1), stored, 1},
		"moved":        {`{metadata: {name: a}, spec: {template: {later: {a: [1]}, spec: {containers: [{name: a, image: b, later: y}]}}}}`, stored, 0},
		"another item": {`{metadata: {name: a}, spec: {template: {spec: {containers: [{name: c, image: d}, {name: a, image: b, later: x}]}}}}`, stored, 0},
	} {
		object := decode(t, c.given)
		var old map[string]any
		if c.old != "" {
			old = decode(t, c.old)
		}
		warnings, err := engine.PrepareChange(t.Context(), Change{Type: ty, Object: object, Old: old}, Warn)
		if err != nil {
			t.Fatal(err)
		}
		if kept := strings.Count(dump(t, object), "later:"); kept != c.kept || kept+len(warnings) != strings.Count(c.given, "later:") {
			t.Errorf("%s: %d are kept, warnings %q", name, kept, warnings)
		}
	}
}
