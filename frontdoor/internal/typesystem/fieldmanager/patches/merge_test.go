package patches

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestMergeNulls: null removes a member and is left out of objects in lists, where items that are
// null stay. The patch is not modified.
func TestMergeNulls(t *testing.T) {
	read := func(text string) map[string]any {
		t.Helper()
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for name, c := range map[string]struct{ current, patch, want string }{
		"member":         {`{a: 1, b: {c: 1, d: 2}}`, `{a: null, b: {c: null}}`, `{b: {d: 2}}`},
		"new object":     {`{}`, `{a: {b: null, c: {d: null}}}`, `{a: {c: {}}}`},
		"list":           {`{a: [{b: 1}]}`, `{a: [{b: null, c: [{d: null, e: 1}]}, null]}`, `{a: [{c: [{e: 1}]}, null]}`},
		"list of lists":  {`{}`, `{a: [[{b: null}]]}`, `{a: [[{}]]}`},
		"for an object":  {`{a: {b: 1}}`, `{a: [{b: null}]}`, `{a: [{}]}`},
		"object for one": {`{a: [1]}`, `{a: {b: null}}`, `{a: {}}`},
	} {
		patch := read(c.patch)
		if got := Merge(read(c.current), patch); !reflect.DeepEqual(got, read(c.want)) {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
		if !reflect.DeepEqual(patch, read(c.patch)) {
			t.Errorf("%s: the patch is now %v", name, patch)
		}
	}
}
