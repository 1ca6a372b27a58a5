package quantity

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestParse(t *testing.T) {
	for _, text := range []string{"1", "0", "+1", "-1", "1.5", ".5", "1e18", "1E18", "1e+18", "1e-9", "1n", "100m", "10Ei", "5E", "1Ki", "1e30", "1e-30",
		"9223372036854775807", "0.333333333333333333"} {
		got, err := Parse(text)
		want, wantErr := resource.ParseQuantity(text)
		if err != nil || wantErr != nil || got.Cmp(want) != 0 {
			t.Errorf("%s: got %v, %v; want %v, %v", text, got.String(), err, want.String(), wantErr)
		}
	}
	for _, text := range []string{"1e31", "1e-31", "1E10000000", "1e200000000", "1e-200000000", "1e99999999999999999999", "1e+2000000000"} {
		if _, err := Parse(text); !errors.Is(err, ErrExponent) {
			t.Errorf("%s: got %v, want %v", text, err, ErrExponent)
		}
	}
	if _, err := Parse(strings.Repeat("1", 65)); !errors.Is(err, ErrTooLong) {
		t.Errorf("65 digits: got %v, want %v", err, ErrTooLong)
	}
	for _, text := range []string{"", "e", "1e", "1ei", "one", "1 Gi"} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q is a quantity", text)
		}
	}
}

func TestUnbounded(t *testing.T) {
	for text, want := range map[string]bool{
		"1e1000000": true, "1E-2000000000": true, "+.5e+99999999": true, "1e99999999999999999999": true,
		"1e999999": false, "1e0000001": false, "e1000000000": false, "a1e1000000": false, "1e1000000 ": false, "1e1000000a": false, "": false, "10000000000": false,
	} {
		if Unbounded(text) != want {
			t.Errorf("%q is unbounded: %v", text, !want)
		}
	}
}

func TestParseMap(t *testing.T) {
	got, err := ParseMap([]byte(`{"cpu":"100m","pods":3,"none":null}`))
	cpu, pods := got["cpu"], got["pods"]
	if err != nil || cpu.MilliValue() != 100 || pods.Value() != 3 || len(got) != 3 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := ParseMap([]byte(`{"cpu":"1e200000000"}`)); !errors.Is(err, ErrExponent) {
		t.Errorf("got %v, want %v", err, ErrExponent)
	}
	if got, err := ParseMap([]byte(`null`)); err != nil || got != nil {
		t.Errorf("null: got %v, %v", got, err)
	}
}
