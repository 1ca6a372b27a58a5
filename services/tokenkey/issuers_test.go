package tokenkey

import (
	"slices"
	"testing"
)

func TestIssuers(t *testing.T) {
	for _, c := range []struct{ given, want []string }{
		{nil, []string{"own"}},
		{[]string{"b", "https://a"}, []string{"b", "https://a"}},
		{[]string{""}, nil},
		{[]string{"a", "b", "a"}, nil},
		{[]string{"https://a%"}, nil},
	} {
		got, err := Issuers(c.given, "own")
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: got %q, %v", c.given, got, err)
		}
	}
}
