package endpoint_test

import (
	"net/netip"
	"testing"

	"github.com/portico-platform/portico/services/endpoint"
)

func TestNetworks(t *testing.T) {
	networks, err := endpoint.ParseNetworks([]string{"10.1.2.3/16", "fd00::/8"})
	if err != nil || networks[0].String() != "10.1.0.0/16" {
		t.Fatalf("got %v, %v", networks, err)
	}
	for _, wrong := range []string{"", "10.0.0.1", "10.0.0.0/33", "example.com/8"} {
		if _, err := endpoint.ParseNetworks([]string{wrong}); err == nil {
			t.Errorf("%q is taken for a network", wrong)
		}
	}
	for address, want := range map[string]bool{
		"10.1.9.9": true, "::ffff:10.1.9.9": true, "64:ff9b::a01:909": true, "::a01:909": true, "fd12::1": true, "fd12::1%eth0": true,
		"10.2.0.0": false, "127.0.0.1": false, "::1": false, "2001:db8::1": false,
	} {
		if _, in := networks.Containing(netip.MustParseAddr(address)); in != want {
			t.Errorf("%s: %v, want %v", address, in, want)
		}
	}
}
