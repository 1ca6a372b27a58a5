package audit

import (
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestTrustedProxies: a client cannot write an address into the log that is not its own.
func TestTrustedProxies(t *testing.T) {
	s := sources{[]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for _, c := range []struct {
		remote    string
		forwarded []string
		want      string
	}{
		{"192.0.2.7:1", []string{"198.51.100.1"}, "192.0.2.7"},
		{"10.1.2.3:1", nil, "10.1.2.3"},
		{"10.1.2.3:1", []string{"198.51.100.1"}, "198.51.100.1 10.1.2.3"},
		{"10.1.2.3:1", []string{"203.0.113.9, 198.51.100.1"}, "198.51.100.1 10.1.2.3"},
		{"10.1.2.3:1", []string{"203.0.113.9", "198.51.100.1,10.1.0.9"}, "198.51.100.1 10.1.0.9 10.1.2.3"},
		{"10.1.2.3:1", []string{"198.51.100.1, nonsense"}, "10.1.2.3"},
		{"10.1.2.3:1", []string{""}, "10.1.2.3"},
		{"[fd00::1]:1", []string{"2001:db8::1"}, "2001:db8::1 fd00::1"},
		{"[::ffff:10.1.2.3]:1", []string{"::ffff:198.51.100.1"}, "198.51.100.1 10.1.2.3"},
		{"nonsense", []string{"198.51.100.1"}, ""},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.remote, c.forwarded
		r.Header.Set("X-Real-Ip", "203.0.113.1")
		if got := strings.Join(s.of(r), " "); got != c.want {
			t.Errorf("%s, %q: logged %q, want %q", c.remote, c.forwarded, got, c.want)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.1.2.3:1"
	r.Header.Set("X-Forwarded-For", strings.Repeat("10.1.0.1,", 1000)+"10.1.0.1")
	if got := s.of(r); len(got) != maxSources {
		t.Errorf("%d addresses are logged, want %d", len(got), maxSources)
	}
	if _, err := (&Settings{proxies: []string{"10.1.2.3"}}).networks(); err == nil {
		t.Error("an address is accepted as a network")
	}
	if networks, err := (&Settings{proxies: []string{"10.1.0.0/16"}}).networks(); err != nil || !slices.Equal(networks, s.proxies[:1]) {
		t.Errorf("parsed %v, error %v", networks, err)
	}
}
