package scalar_test

import (
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/scalar"
)

func TestRead(t *testing.T) {
	ofResource := func(s string) (any, string) { return scalar.Quantity(s, true) }
	for _, c := range []struct {
		read        func(string) (any, string)
		given, kept string // kept is empty for what is refused
	}{
		{scalar.Time, "2021-04-08T12:00:00+02:00", "2021-04-08T10:00:00Z"},
		{scalar.Time, "2021-04-08T12:00:00.5Z", "2021-04-08T12:00:00Z"},
		{scalar.Time, "2021-04-08", ""},
		{scalar.MicroTime, "2021-04-08T12:00:00.000001+02:00", "2021-04-08T10:00:00.000001Z"},
		{scalar.MicroTime, "2021-04-08T12:00:00Z", ""},
		{scalar.MicroTime, "2021-04-08T12:00:00.5Z", ""},
		{scalar.Binary, "YWJj\nZGVm", "YWJjZGVm"},
		{scalar.Binary, "YWJ", ""},
		{ofResource, "0.0001", "1m"},
		{ofResource, "1e999999999999", ""},
		{ofResource, "x", ""},
	} {
		kept, why := c.read(c.given)
		if c.kept == "" && (why == "" || kept != nil) || c.kept != "" && kept != c.kept {
			t.Errorf("%q is kept as %v (%s), want %q", c.given, kept, why, c.kept)
		}
	}
}

func TestMismatch(t *testing.T) {
	for _, c := range []struct {
		want                string
		value               any
		patched, dictionary bool
		message             string
	}{
		{"an object", "a", false, true, "expected an object, got a string"},
		{"an object", nil, true, true, "expected an object, got null"},
		{"an object", "a", true, true, "cannot restore map from string"},
		{"an object", []any{}, true, false, "cannot restore struct from: slice"},
		{"a list", map[string]any{}, true, false, "cannot restore slice from map"},
	} {
		if got := scalar.Mismatch(c.want, c.value, c.patched, c.dictionary); got != c.message {
			t.Errorf("%v for %s: %s, want %s", c.value, c.want, got, c.message)
		}
	}
}
