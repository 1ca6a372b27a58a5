package jsonpatch

import (
	"bytes"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// FuzzApply applies patches to objects: a result is within the limits and the same as
// the library's; anything else is a client error Status.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{}`), []byte(`[]`))
	f.Fuzz(func(t *testing.T, object, patch []byte) {
		got, err := Apply(t.Context(), object, patch)
		if err != nil {
			if s := services.AsStatus(err); s.Code != 400 && s.Code != 413 && s.Code != 422 {
				t.Fatalf("%d: %v", s.Code, err)
			}
			return
		}
		if len(got) > MaxBytes || tree.CheckDepth(got) != nil {
			t.Fatalf("%d bytes, %v", len(got), tree.CheckDepth(got))
		}
		decoded, err := Decode(patch)
		if err != nil {
			t.Fatalf("accepted an invalid patch: %v", err)
		}
		operations := decoded.operations
		if len(operations) > 16 || len(object) > 1<<10 {
			return // it is applied in batches
		}
		want := object
		if len(operations) > 0 {
			if want, err = operations.Apply(object); err != nil {
				t.Fatalf("accepted a patch that the library rejects: %v", err)
			}
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s, the library makes it %s", got, want)
		}
	})
}
