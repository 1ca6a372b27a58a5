package audit_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
)

func TestID(t *testing.T) {
	for given, want := range map[string]string{
		"a-1":                                   "a-1",
		strings.Repeat("x", 64):                 strings.Repeat("x", 64),
		strings.Repeat("x", 1<<20):              strings.Repeat("x", 64),
		"a\tb\x01\x7fc\u2028d e\xff":            "abcde",
		strings.Repeat("x", 63) + "\u00e9 tail": strings.Repeat("x", 63),
	} {
		if got := audit.ID(given); got != want {
			t.Errorf("%.80q: got %q, want %q", given, got, want)
		}
	}
	for _, given := range []string{"", "\x01\n", strings.Repeat("\u00e9", 100)} {
		if a, b := audit.ID(given), audit.ID(given); a == b || len(a) != 36 {
			t.Errorf("%q: got %q and %q, want new IDs", given, a, b)
		}
	}
}
