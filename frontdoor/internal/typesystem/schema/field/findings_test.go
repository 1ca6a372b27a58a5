package field

import (
	"slices"
	"testing"
)

// TestOrderOfUnknownFields: sorted field by field, as kube-apiserver finds them in a body of YAML.
func TestOrderOfUnknownFields(t *testing.T) {
	f := Findings{Unknown: []string{"spec.x", "a.envFrom[0].x", "a.env[1].x", "a.env.x", "a-b.x", "a.env[0].x", "a"}}
	want := []string{"a", "a.env.x", "a.env[0].x", "a.env[1].x", "a.envFrom[0].x", "a-b.x", "spec.x"}
	for i, path := range want {
		want[i] = `unknown field "` + path + `"`
	}
	if got := f.List(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
