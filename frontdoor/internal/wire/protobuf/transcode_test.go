package protobuf

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestEveryKindHasPlan: none takes the long way for want of a plan.
func TestEveryKindHasPlan(t *testing.T) {
	r := NewRegistry(vocabulary.K8s())
	for kind, goType := range r.types.AllKnownTypes() {
		if kind.Version == "__internal" {
			continue
		}
		if m, err := r.Find(kind); err == nil && m.plan == nil {
			_, err := compiler{}.plan(goType)
			t.Errorf("%s has no plan: %v", kind, err)
		}
	}
}

func check(tb testing.TB, m *Message, object []byte) {
	tb.Helper()
	want, err := m.encode(object)
	got, ok := (&transcoder{}).transcode(nil, m.plan, object)
	switch {
	case ok && err != nil:
		tb.Errorf("%s: %s is transcoded, but %v", m.Kind, object, err)
	case ok && !bytes.Equal(got, want):
		tb.Errorf("%s: %s is transcoded to\n%x, want\n%x", m.Kind, object, got, want)
	}
}

var _ = schema.GroupVersionKind{}
