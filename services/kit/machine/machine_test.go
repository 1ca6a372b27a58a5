package machine

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/spf13/pflag"
)

// TestMachine: a machine has the addresses of its interfaces and those given, in every form, and the
// ports that flags name.
func TestMachine(t *testing.T) {
	m := New(netip.MustParseAddr("203.0.113.7"))
	m.interfaces = func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.ParseIP("10.0.0.5"), Mask: net.CIDRMask(24, 32)}, &net.IPNet{IP: net.ParseIP("2001:db8::5"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.Int("secure-port", 6443, "")
	fs.String("listen-address", "127.0.0.1:7001", "")
	fs.StringSlice("etcd-servers", []string{"https://a:2379", "https://b:2380"}, "")
	fs.String("overrides", "/events#https://host:2381;https://[fd00::1]:2382", "")
	fs.StringSlice("targets", []string{"store=10.0.0.9:7003", "hub=[::1]:7004"}, "")
	fs.String("networks", "fd00::7005/64,10.0.0.0/8", "")
	fs.String("issuer", "https://accounts.example.com", "")
	fs.Int("burst", 9000, "")
	fs.String("empty", "", "")
	m.KnowFlags(fs)
	m.KnowPort(8443)
	for address, own := range map[string]bool{
		"10.0.0.5": true, "::ffff:10.0.0.5": true, "64:ff9b::a00:5": true, "2001:db8::5": true, "203.0.113.7": true, "127.0.0.1": true, "::1": true, "0.0.0.0": true,
		"10.0.0.6": false, "2001:db8::6": false, "203.0.113.8": false,
	} {
		if got := m.Has(netip.MustParseAddr(address)); got != own {
			t.Errorf("%s: got %v", address, got)
		}
		for port, known := range map[uint16]bool{6443: true, 7001: true, 2379: true, 2380: true, 2381: true, 2382: true, 7003: true, 7004: true, 7005: false, 8443: true, 443: false, 9000: false, 10250: false} {
			if got := m.Serves(netip.AddrPortFrom(netip.MustParseAddr(address), port)); got != (own && known) {
				t.Errorf("%s, port %d: got %v", address, port, got)
			}
		}
	}
	unknown := New()
	unknown.interfaces = func() ([]net.Addr, error) { return nil, errors.New("no") }
	if !unknown.Has(netip.MustParseAddr("10.0.0.6")) {
		t.Error("an address that may be the machine's is not its own")
	}
	if none := (*Machine)(nil); none.Has(netip.MustParseAddr("127.0.0.1")) || none.Serves(netip.MustParseAddrPort("127.0.0.1:1")) {
		t.Error("nil has addresses")
	}
}
