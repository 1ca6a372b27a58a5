package managers

import (
	"strings"
	"testing"
)

func TestFromUserAgent(t *testing.T) {
	for agent, want := range map[string]string{
		"gardener/1.2 (linux)": "gardener", "curl": "curl", "": "", "a\x01b/1": "ab",
		strings.Repeat("é", 100) + "/1": strings.Repeat("é", 64),
	} {
		if got := FromUserAgent(agent); got != want {
			t.Errorf("%q: got %q, want %q", agent, got, want)
		}
	}
}
