package audit

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
)

// FuzzID: the resulting IDs are short, safe in a header and in a log line, and stable
// under ID.
func FuzzID(f *testing.F) {
	f.Add("a")
	f.Fuzz(func(t *testing.T, given string) {
		id := ID(given)
		if id == "" || len(id) > maxIDLength {
			t.Fatalf("%q: %d bytes", id, len(id))
		}
		for _, c := range []byte(id) {
			if c <= ' ' || c > '~' {
				t.Fatalf("%q holds %q", id, c)
			}
		}
		if again := ID(id); again != id {
			t.Errorf("%q becomes %q", id, again)
		}
	})
}

// FuzzPolicy: every rule of a policy that is accepted has a known level, and a request matches at
// most one.
func FuzzPolicy(f *testing.F) {
	for _, rules := range []string{"rules: []\n", "rules: [{level: Metadata}]\nomitStages: [RequestReceived]\n",
		"rules: [{level: Request, users: [a], verbs: [get], resources: [{group: '', resources: ['pods/*', '*/status'], resourceNames: [x]}], namespaces: [n]}, {level: None, nonResourceURLs: ['/healthz*']}]\n"} {
		f.Add([]byte(head + rules))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		p, err := ParsePolicy(content, "audit.platform.io/v1")
		if err != nil {
			return
		}
		for _, a := range []services.Attributes{{Verb: "get", Path: "/healthz/x"}, {Verb: "get", Resource: "pods", Subresource: "status", Name: "x", Namespace: "n"}, {}} {
			switch level := p.Rule(a).level(); level {
			case "None", "Metadata", "Request", "RequestResponse":
			default:
				t.Errorf("%q: the level of %+v is %q", content, a, level)
			}
		}
	})
}

// FuzzSources: the last address is that of the connection, the others are addresses too, and behind
// trusted proxies none comes from further away than the first untrusted one.
func FuzzSources(f *testing.F) {
	f.Add("10.0.0.1:443", "1.2.3.4, 10.0.0.2", "")
	f.Add("[::ffff:10.0.0.1]:443", "::1,,10.1.1.1", "1.2.3.4")
	f.Add("1.2.3.4:1", "5.6.7.8", "[::1]")
	proxies := sources{proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f.Fuzz(func(t *testing.T, remote, forwarded, real string) {
		r := &http.Request{RemoteAddr: remote, Header: http.Header{"X-Forwarded-For": strings.Split(forwarded, ";"), "X-Real-Ip": {real}}}
		for _, s := range []sources{{}, proxies} {
			list := s.of(r)
			for i, text := range list {
				at, err := netip.ParseAddr(text)
				if err != nil || len(list) > maxSources {
					t.Errorf("%q, %q, %q: %q", remote, forwarded, real, list)
				}
				if s.proxies != nil && i > 0 && i < len(list) && !s.proxy(at) {
					t.Errorf("%q, %q: %q is behind an address that is no proxy", remote, forwarded, list)
				}
			}
		}
	})
}
