package format

import (
	"strings"
	"testing"
)

// TestDNSName: a name with an asterisk anywhere is one with a wildcard.
func TestDNSName(t *testing.T) {
	for name, want := range map[string]string{"example.com": "", "*.example.com": "", "*": "must start with '*.'", "a*.example.com": "must start with '*.'", "a b": "a lowercase RFC 1123 subdomain"} {
		if got := strings.Join(DNSName(name), " "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %s", name, got)
		}
	}
}
