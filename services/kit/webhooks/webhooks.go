// Package webhooks makes the clients of webhooks for a service of the suite, with the flags that
// admission and conversion webhooks share.
package webhooks

import (
	"net/netip"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/machine"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/webhook"
)

const (
	denied  = "webhook-deny-cidrs"
	routing = "enable-aggregator-routing"
)

// Flags registers the flags.
func Flags(fs *pflag.FlagSet) {
	fs.StringSlice(denied, nil, "networks that admission and conversion webhooks must not be in, such as those of the service's own machines; checked when a connection is made")
	fs.Bool(routing, false, "send requests for webhooks and extensions of the API to endpoints of their service, not to its cluster IP")
}

// Clients returns the clients of a service, which resolve Services in the store. The error is
// run.ErrUsage if a flag is invalid.
func Clients(n *run.Node, store services.Reader) (*webhook.Clients, error) {
	texts, err := n.Flags.GetStringSlice(denied)
	if err != nil {
		return nil, err
	}
	networks, err := endpoint.ParseNetworks(texts)
	if err != nil {
		return nil, run.Usagef("--%s: %v", denied, err)
	}
	return webhook.NewClients(webhook.Settings{Caller: Caller(n.Service), Find: locate.NewCache(Locator(n, store)).One, Deny: networks,
		Refused: refused(n), Ledger: n.Ledger}), nil
}

// refused returns a function that reports whether an address is that of another port of the suite than
// the one for clients: extensions may serve webhooks through the API itself.
func refused(n *run.Node) func(netip.AddrPort) bool {
	own := machine.New()
	own.KnowFlags(n.Flags, "secure-port")
	return own.Serves
}

// Locator finds the servers of Services as the flags say.
func Locator(n *run.Node, store services.Reader) locate.Locator {
	endpoints, _ := n.Flags.GetBool(routing)
	return locate.Locator{Store: store, Vocabulary: n.Vocabulary, Endpoints: endpoints}
}

// Caller is a service as a caller of webhooks.
func Caller(service string) webhook.Caller {
	return webhook.Caller{Agent: "portico-" + service, Trace: tracing.ToHeader}
}
