package object_test

import (
	"testing"

	"github.com/portico-platform/portico/store/internal/object"
)

// FuzzDecode decodes paths and values that etcd might hold: no panic, and the object
// has the key of its path.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		o, err := object.Codec{}.Decode(path, value, 5)
		if err == nil && (o.Revision != 5 || len(o.JSON) > len(value)+64) {
			t.Errorf("%q: got revision %d and %d bytes of %d", path, o.Revision, len(o.JSON), len(value))
		}
	})
}
