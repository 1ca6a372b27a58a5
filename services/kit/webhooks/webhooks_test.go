package webhooks

import (
	"net/netip"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

// TestRefused: webhooks may be served through the API on this machine, but at no other port of the suite.
func TestRefused(t *testing.T) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.Int("secure-port", 6443, "")
	fs.String("rpc-address", "0.0.0.0:7001", "")
	check := refused(&run.Node{Flags: fs})
	for at, want := range map[string]bool{"127.0.0.1:7001": true, "[::1]:7001": true, "127.0.0.1:6443": false, "127.0.0.1:9443": false, "203.0.113.1:7001": false} {
		if got := check(netip.MustParseAddrPort(at)); got != want {
			t.Errorf("%s: got %v", at, got)
		}
	}
}
