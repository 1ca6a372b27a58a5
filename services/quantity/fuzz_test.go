package quantity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzParse parses text: an accepted quantity equals the library's, and can be
// formatted, added and compared within bounds.
func FuzzParse(f *testing.F) {
	f.Add("1")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			return
		}
		if len(text) > maxText {
			t.Fatalf("accepted %d bytes", len(text))
		}
		want, err := resource.ParseQuantity(text)
		if err != nil || want.Cmp(q) != 0 {
			t.Fatalf("%q: %v, the library reads %v, %v", text, q.String(), want.String(), err)
		}
		sum := q.DeepCopy()
		sum.Add(resource.MustParse("1n"))
		if written := sum.String(); len(written) > 4*maxText {
			t.Errorf("%q and a little more are written with %d characters", text, len(written))
		}
	})
}
