package keywords

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/release"
)

// TestEnumerations: short and long enumerations allow the same values, of any type.
func TestEnumerations(t *testing.T) {
	for _, count := range []int{4, searched, searched + 1, 1000} {
		s := &spec.Schema{}
		s.Enum = []any{"a", int64(7), true, nil}
		for n := len(s.Enum); n < count; n++ {
			s.Enum = append(s.Enum, fmt.Sprint("v", n))
		}
		k := Compile(s, release.V136)
		for _, value := range append([]any{"a", int64(7), true, nil}, s.Enum[len(s.Enum)-1]) {
			var e field.Errors
			if k.checkEnum(&e, value, (&field.Path{Name: "x"})); len(e.Causes()) > 0 {
				t.Errorf("%d values: %v is refused: %v", count, value, e.Causes())
			}
		}
		for _, value := range []any{"b", "7", int64(8), false, ""} {
			var e field.Errors
			if k.checkEnum(&e, value, (&field.Path{Name: "x"})); len(e.Causes()) != 1 || !strings.Contains(e.Causes()[0].Message, `supported values: "a", "7", "true", "null"`) {
				t.Errorf("%d values: %v: %v", count, value, e.Causes())
			}
		}
	}
}

// TestLongEnumerations: a list of 400,000 items is compared with an enumeration of 60,000 values, which would take
// minutes one by one.
func TestLongEnumerations(t *testing.T) {
	s := &spec.Schema{}
	for n := range 60_000 {
		s.Enum = append(s.Enum, fmt.Sprint("value-", n))
	}
	k := Compile(s, release.V136)
	began := time.Now()
	var e field.Errors
	at := &field.Path{Name: "x"}
	for range 400_000 {
		k.checkEnum(&e, "value-59999", at)
	}
	if took := time.Since(began); len(e.Causes()) > 0 || took > 15*time.Second {
		t.Errorf("%v, after %v", e.Causes(), took)
	}
}
