package crd_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/formats"
	"github.com/portico-platform/portico/services/release"
)

// TestFormats: which formats a release validates, and that it warns of the others; 1.21 warns of none.
func TestFormats(t *testing.T) {
	const schema = `{type: object, properties: {spec: {type: object, properties: {short: {type: string, format: k8s-short-name}, long: {type: string, format: k8s-long-name},
  time: {type: string, format: date-time}, odd: {type: string, format: shoe-size}, any: {x-int-or-string: true, format: int32}, number: {type: number, format: float},
  whole: {type: integer, format: float}, parts: {type: array, items: {type: string, format: cider, allOf: [{format: int64}]}}}}}}`
	eachVocabulary(t, func(t *testing.T, w world) {
		now := later(t, w.vocabulary)
		definition := now.widgets(t, schema)
		want := []string{`unrecognized format "cider"`, `unrecognized format "float"`, `unrecognized format "int32"`, `unrecognized format "int64"`, `unrecognized format "shoe-size"`}
		if got := formats.Warnings(release.V136, definition, nil); !slices.Equal(got, want) {
			t.Errorf("a new definition: got %q", got)
		}
		if got := formats.Warnings(release.V136, definition, now.widgets(t, strings.Replace(schema, "cider", "cidr", 1))); !slices.Equal(got, want[:1]) {
			t.Errorf("a definition with one more: got %q", got)
		}
		if got := formats.Warnings(release.V121, definition, nil); len(got) > 0 {
			t.Errorf("release 1.21: got %q", got)
		}
		now, before := now.ruled(t, schema), w.ruled(t, schema)
		for value, x := range map[string]struct{ before, want string }{
			"{short: a-b, long: a.b-c, any: 3000000000, odd: x, parts: [x]}": {},
			"{short: a.b}":   {"", "spec.short in body must be of type k8s-short-name"},
			"{long: A}":      {"", "spec.long in body must be of type k8s-long-name"},
			"{time: noon}":   {"date-time", "spec.time in body must be of type date-time"},
			"{number: 1e39}": {"", "Checked value must be of type number with format float in spec.number"},
		} {
			if found := strings.Join(now.change(t, "", value), "\n"); (found == "") != (x.want == "") || !strings.Contains(found, x.want) {
				t.Errorf("%s: got %q, want %q", value, found, x.want)
			}
			if found := strings.Join(before.change(t, "", value), "\n"); (found == "") != (x.before == "") || !strings.Contains(found, x.before) {
				t.Errorf("%s at 1.21: got %q, want %q", value, found, x.before)
			}
		}
	})
}
