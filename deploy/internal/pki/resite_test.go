package pki

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestResite moves the front door, adds a NATS server and removes one: what has to change
// does, and nothing else.
func TestResite(t *testing.T) {
	p := made(t)
	before := contents(t, p)
	if changed, err := p.Resite(testSite()); err != nil || len(changed) > 0 || !maps.Equal(before, contents(t, p)) {
		t.Fatalf("the same site: %q, %v", changed, err)
	}
	site := testSite()
	site.Server, site.FrontdoorHosts = "https://new.example.com", []string{"also.example.com"}
	site.NATSServers = []string{"nats-1", "nats-3"}
	changed, err := p.Resite(site)
	slices.Sort(changed)
	if want := []string{"admin/kubeconfig", "frontdoor/serving.crt", "nats-3"}; err != nil || !slices.Equal(changed, want) {
		t.Errorf("made %q, %v, want %q", changed, err, want)
	}
	after := contents(t, p)
	for name, content := range after {
		_, existed := before[name]
		should := slices.Contains(changed, name) || name == siteFile || strings.HasSuffix(name, "/server.conf") && name != "nats-2/server.conf" || strings.HasPrefix(name, "nats-3/")
		if (before[name] != content || !existed) != should {
			t.Errorf("%s: should have changed: %t", name, should)
		}
	}
	if cert, err := p.readCertificate("frontdoor/serving.crt"); err != nil || cert.VerifyHostname("also.example.com") != nil || cert.VerifyHostname("new.example.com") != nil {
		t.Errorf("the serving certificate: %v %v", cert.DNSNames, err)
	}
	if !strings.Contains(after["admin/kubeconfig"], "https://new.example.com") {
		t.Error("the administrator's configuration leads to the old server")
	}
	if !strings.Contains(after["nats-1/server.conf"], "tls://nats-3:6222") || strings.Contains(after["nats-1/server.conf"], "nats-2") {
		t.Error("nats-1 does not know the others")
	}
	again, err := Open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := again.Resite(site); err != nil || len(changed) > 0 {
		t.Errorf("the second time: %q, %v", changed, err)
	}
}

func TestWrongResites(t *testing.T) {
	for want, change := range map[string]func(*Site){
		"--workers-server: was":   func(s *Site) { s.WorkersServer = "https://elsewhere" },
		"--nats-servers: \"a/b\"": func(s *Site) { s.NATSServers = []string{"a/b"} },
	} {
		p, site := made(t), testSite()
		before := contents(t, p)
		change(&site)
		if _, err := p.Resite(site); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if !maps.Equal(before, contents(t, p)) {
			t.Errorf("%s: something has changed", want)
		}
	}
}
