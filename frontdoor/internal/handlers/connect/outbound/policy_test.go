package outbound

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/endpoint"
)

func TestPolicy(t *testing.T) {
	networks, err := endpoint.ParseNetworks([]string{"127.0.0.9/32", "10.1.2.3/16"})
	if err != nil || networks[1].String() != "10.1.0.0/16" {
		t.Fatalf("got %v, %v", networks, err)
	}
	if _, err := endpoint.ParseNetworks([]string{"10.0.0.1"}); err == nil {
		t.Error("an address is taken for a network")
	}
	p := Policy{Allow: networks[:1], Deny: networks[1:]}
	for address, allowed := range map[string]bool{
		"10.0.0.1": true, "192.168.1.1": true, "2001:db8::1": true, "fd00::1": true, "127.0.0.9": true, "::ffff:10.0.0.1": true,
		"10.1.0.1": false, "::ffff:10.1.0.1": false, "127.0.0.1": false, "::1": false, "::ffff:127.0.0.1": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b::7f00:1": false, "::7f00:1": false,
		"fe80::1": false, "fe80::1%eth0": false, "fd00:ec2::254": false, "100.100.100.200": false, "168.63.129.16": false,
		"0.0.0.0": false, "0.1.2.3": false, "::": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false,
		"": false, "localhost": false, "10.0.0.1:80": false, "0x7f.1": false, "2130706433": false,
	} {
		if err := p.CheckText(address); (err == nil) != allowed {
			t.Errorf("%q: %v, want allowed %v", address, err, allowed)
		}
	}
}

// FuzzPolicy: however an address is written, what stands for a loopback or link-local
// address is refused.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::ffff:169.254.1.1", "64:ff9b::7f00:1", "10.0.0.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if (Policy{}).CheckText(text) != nil {
			return
		}
		address := netip.MustParseAddr(text)
		for _, a := range []netip.Addr{address, address.Unmap(), endpoint.Plain(address)} {
			if a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
				t.Errorf("%q is allowed, and is %s", text, a)
			}
		}
	})
}

// TestRefusalsNameTheirFlag: an administrator reads in the error, which is also in the condition of an
// extension, which flag decides.
func TestRefusalsNameTheirFlag(t *testing.T) {
	denied, err := endpoint.ParseNetworks([]string{"10.1.0.0/16"})
	if err != nil {
		t.Fatal(err)
	}
	p := Policy{Deny: denied}
	for address, flag := range map[string]string{"127.0.0.14": "--connect-allow-cidrs", "169.254.1.1": "--connect-allow-cidrs",
		"100.100.100.200": "--connect-allow-cidrs", "10.1.2.3": "--connect-deny-cidrs"} {
		if err := p.CheckText(address); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
