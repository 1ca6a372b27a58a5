package object_test

import (
	"testing"

	"github.com/portico-platform/portico/store/internal/object"
)

// FuzzDecode reads paths and values as etcd might hold them: no panic, and the object
// is the one of its path.
func FuzzDecode(f *testing.F) {
	f.Fuzz(func(t *testing.T, path string, value []byte) {
		o, err := object.Decode(path, value, 5)
		if err == nil && (o.Revision != 5 || len(o.JSON) > len(value)+64) {
			t.Errorf("%q: got revision %d and %d bytes of %d", path, o.Revision, len(o.JSON), len(value))
		}
	})
}
