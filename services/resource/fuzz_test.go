package resource

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

// FuzzParsePath checks that no etcd key is parsed as the key of another object.
func FuzzParsePath(f *testing.F) {
	f.Fuzz(func(t *testing.T, path string) {
		k, err := ParsePath(path)
		if err != nil || k.Resource == "" || k.Name == "" {
			return
		}
		again, err := ParsePath(k.Path())
		if err != nil || again != k {
			t.Errorf("%q is %+v, whose path %q is %+v (%v)", path, k, k.Path(), again, err)
		}
	})
}

// FuzzDecodeRecord decodes stored values: an accepted value encodes to the same record,
// and a resourceVersion can be spliced in.
func FuzzDecodeRecord(f *testing.F) {
	f.Fuzz(func(t *testing.T, value []byte) {
		r, err := DecodeRecord(value)
		if err != nil {
			return
		}
		again, err := DecodeRecord(EncodeRecord(r))
		if err != nil || again.UID != r.UID || again.At != r.At || !bytes.Equal(again.JSON, r.JSON) ||
			!maps.Equal(again.Labels, r.Labels) || !maps.Equal(again.Fields, r.Fields) {
			t.Errorf("%q is read as %+v, and after writing as %+v (%v)", value, r, again, err)
		}
		if spliced := tree.InsertResourceVersion(r.JSON, r.At, 7); len(spliced) > len(r.JSON)+64 {
			t.Errorf("a version made %d bytes of %d", len(spliced), len(r.JSON))
		}
	})
}

// FuzzParseSelector checks that matching is deterministic and the same as with the
// selectors of apimachinery. A field may have no name: the
// front door, which knows the fields of a type, refuses it.
func FuzzParseSelector(f *testing.F) {
	key := Key{GroupResource: GroupResource{Resource: "pods"}, Namespace: "a", Name: "b"}
	labels, fields := map[string]string{"app": "web", "n": "7"}, map[string]string{"spec.nodeName": "n1"}
	f.Fuzz(func(t *testing.T, labelSelector, fieldSelector string) {
		s, err := ParseSelector(labelSelector, fieldSelector)
		if err != nil {
			return
		}
		again, err := ParseSelector(labelSelector, fieldSelector)
		if err != nil || s.Matches(key, labels, fields) != again.Matches(key, labels, fields) {
			t.Errorf("%q, %q: two readings differ (%v)", labelSelector, fieldSelector, err)
		}
		if got, want := s.Matches(key, labels, fields), reference(t, labelSelector, fieldSelector, key, labels, fields); got != want {
			t.Errorf("%q, %q: %v, want %v", labelSelector, fieldSelector, got, want)
		}
		if labelSelector == "" && fieldSelector == "" && !s.Matches(key, labels, fields) {
			t.Error("the empty selector does not match")
		}
	})
}

// FuzzParseVersion accepts only decimal numbers that are not negative.
func FuzzParseVersion(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseVersion(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Errorf("%q is %d", text, n)
		}
		if again, err := ParseVersion(strconv.FormatInt(n, 10)); err != nil || again != n {
			t.Errorf("%q is %d, and that is %d (%v)", text, n, again, err)
		}
	})
}

// FuzzSpliceVersion splices a resourceVersion into valid objects.
func FuzzSpliceVersion(f *testing.F) {
	f.Fuzz(func(t *testing.T, name string, revision int64) {
		object, err := json.Marshal(map[string]any{"metadata": map[string]string{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(object, []byte(`{"name"`)) + 1
		var o struct {
			Metadata struct{ Name, ResourceVersion string }
		}
		if err := json.Unmarshal(tree.InsertResourceVersion(object, at, revision), &o); err != nil || o.Metadata.ResourceVersion != strconv.FormatInt(revision, 10) {
			t.Errorf("%s at %d: got %+v, %v", object, revision, o, err)
		}
	})
}
