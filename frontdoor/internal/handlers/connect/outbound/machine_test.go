package outbound

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/machine"
)

// TestOwnMachine: at the machine of the front door, kubelets are reached, other ports of nodes, pods and
// endpoints only if they are allowed, those of extensions always, and those of the suite never.
func TestOwnMachine(t *testing.T) {
	own := machine.New(netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("203.0.113.8"))
	own.KnowPort(6443)
	p := Policy{Allow: endpoint.Networks{netip.MustParsePrefix("203.0.113.8/32"), netip.MustParsePrefix("127.0.0.1/32")}, Machine: own}
	for at, want := range map[string]struct{ content, extension bool }{
		"203.0.113.7:10250":         {true, true},
		"203.0.113.7:9100":          {false, true},
		"203.0.113.7:6443":          {false, false},
		"[::ffff:203.0.113.7]:6443": {false, false},
		"[64:ff9b::cb00:7107]:6443": {false, false},
		"203.0.113.8:9100":          {true, true},
		"203.0.113.8:6443":          {false, false},
		"127.0.0.1:9100":            {true, true},
		"127.0.0.1:6443":            {false, false},
		"127.0.0.2:9100":            {false, false},
		"203.0.113.9:6443":          {true, true},
		"203.0.113.9:22":            {true, true},
	} {
		to := netip.MustParseAddrPort(at)
		if got := p.check(to) == nil; got != want.content {
			t.Errorf("%s of a node: got %v", at, got)
		}
		if got := p.checkExtension(to) == nil; got != want.extension {
			t.Errorf("%s of an extension: got %v", at, got)
		}
	}
}

// TestPortsOfTheSuite: no transport reaches a port of the suite on this machine, whatever is allowed and
// however it is named.
func TestPortsOfTheSuite(t *testing.T) {
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	u, err := url.Parse(s.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	s.config.Policy.Machine = machine.New()
	s.config.Policy.Machine.KnowPort(port)
	transports := s.transports()
	extension, err := transports.Extension(Trust{Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, over := range map[string]*http.Transport{"node": transports.Node(false), "verified node": transports.Node(true), "plain": transports.Plain, "extension": extension} {
		for _, host := range []string{"127.0.0.1", "localhost"} {
			s.server.URL = fmt.Sprintf("https://%s:%d", host, port)
			if err := s.get(over); err == nil || !strings.Contains(err.Error(), "port of the suite") {
				t.Errorf("%s at %s: got %v", name, host, err)
			}
		}
	}
}
