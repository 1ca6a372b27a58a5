package field

import (
	"fmt"
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

// TestLimitOfFindings: the first ones of a body count, whatever they are.
func TestLimitOfFindings(t *testing.T) {
	var f Findings
	for i := range 3 * maxListed / 2 {
		f.Decoded = append(f.Decoded, fmt.Sprintf("duplicate field %q", fmt.Sprintf("a%03d", i)))
		f.Unknown = append(f.Unknown, fmt.Sprintf("b%03d", i))
	}
	f.Opaque = func([]string) bool { return false }
	if got := f.List(); len(got) != 2*maxListed || got[maxListed] != `unknown field "b000"` {
		t.Errorf("without an order: %d findings", len(got))
	}
	f.Order = slices.Reverse[[]string]
	if got := f.List(); len(got) != maxListed || got[0] != `unknown field "b149"` {
		t.Errorf("in an order: %d findings, the first one %s", len(got), got[0])
	}
}
