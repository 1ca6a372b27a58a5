package pki

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// TestUpdateSite changes the names of the front door, adds a NATS server and removes one:
// only the affected files change.
func TestUpdateSite(t *testing.T) {
	p := newPKI(t)
	before := contents(t, p)
	if changed, err := p.UpdateSite(testSite()); err != nil || len(changed) > 0 || !maps.Equal(before, contents(t, p)) {
		t.Fatalf("the same site: %q, %v", changed, err)
	}
	site := testSite()
	site.Server, site.FrontdoorHosts = "https://new.example.com", []string{"also.example.com"}
	site.NATSServers = []string{"nats-1", "nats-3"}
	changed, err := p.UpdateSite(site)
	slices.Sort(changed)
	if want := []string{"admin/kubeconfig", "frontdoor/serving.crt", "nats-3"}; err != nil || !slices.Equal(changed, want) {
		t.Errorf("created %q, %v, want %q", changed, err, want)
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
		t.Error("the administrator's configuration contains the old server")
	}
	if !strings.Contains(after["nats-1/server.conf"], "tls://nats-3:6222") || strings.Contains(after["nats-1/server.conf"], "nats-2") {
		t.Error("the configuration of nats-1 does not contain the other servers")
	}
	again, err := Open(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := again.UpdateSite(site); err != nil || len(changed) > 0 {
		t.Errorf("the second time: %q, %v", changed, err)
	}
}

func TestInvalidSiteUpdates(t *testing.T) {
	for want, change := range map[string]func(*Site){
		"--workers-server: was":   func(s *Site) { s.WorkersServer = "https://elsewhere" },
		"--nats-servers: \"a/b\"": func(s *Site) { s.NATSServers = []string{"a/b"} },
	} {
		p, site := newPKI(t), testSite()
		before := contents(t, p)
		change(&site)
		if _, err := p.UpdateSite(site); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if !maps.Equal(before, contents(t, p)) {
			t.Errorf("%s: something has changed", want)
		}
	}
}

// TestComplete gives identities of a release without nodes and extensions what they lack: what exists stays,
// and folders that have been moved to other machines are not created again.
func TestComplete(t *testing.T) {
	p := newPKI(t)
	lacking := []string{"authorities/nodes.crt", "authorities/nodes.key", "frontdoor/kubelet.crt", "frontdoor/kubelet.key", "frontdoor/kubelet-ca.crt", "node",
		"frontdoor/proxy-client.crt", "frontdoor/proxy-client.key", "frontdoor/users-ca.crt", "frontdoor/front-proxy-ca.crt"}
	for _, name := range append(lacking, "store") {
		if err := os.RemoveAll(p.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	before := contents(t, p)
	created, err := p.Complete()
	if want := []string{"authorities/nodes.crt", "node", "frontdoor/kubelet-ca.crt", "frontdoor/kubelet.crt",
		"frontdoor/proxy-client.crt", "frontdoor/users-ca.crt", "frontdoor/front-proxy-ca.crt"}; err != nil || !equalSets(created, want) {
		t.Fatalf("created %q, %v, want %q", created, err, want)
	}
	after := contents(t, p)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s has changed", name)
		}
	}
	if len(after) != len(before)+len(lacking) || after["node/clients-ca.crt"] != after["authorities/nodes.crt"] || after["frontdoor/kubelet-ca.crt"] != after["authorities/signing.crt"] {
		t.Errorf("%d files, want %d", len(after), len(before)+len(lacking))
	}
	if again, err := p.Complete(); err != nil || len(again) > 0 {
		t.Errorf("the second time: %q, %v", again, err)
	}
}

func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestSingleNATSServer: a server without others listens for none until there is a second one.
func TestSingleNATSServer(t *testing.T) {
	site := testSite()
	site.NATSServers = []string{"nats-1"}
	dir := t.TempDir() + "/pki"
	if err := Init(dir, site); err != nil {
		t.Fatal(err)
	}
	p, err := Edit(dir)
	if err != nil {
		t.Fatal(err)
	}
	written := func() *server.Options {
		options, err := server.ProcessConfigFile(p.path("nats-1/server.conf"))
		if err != nil {
			t.Fatal(err)
		}
		return options
	}
	t.Chdir(p.path("nats-1"))
	if o := written(); o.Cluster.Port != 0 || len(o.Nkeys) == 0 {
		t.Errorf("%+v, %d users", o.Cluster, len(o.Nkeys))
	}
	site.NATSServers = append(site.NATSServers, "nats-2")
	if _, err := p.UpdateSite(site); err != nil {
		t.Fatal(err)
	}
	if o := written(); o.Cluster.Port != 6222 {
		t.Errorf("%+v", o.Cluster)
	}
}
