package frontdoor

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// addressConfig holds the flags about the addresses of Services.
type addressConfig struct {
	networks []string
	ports    string
}

func (c *addressConfig) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.networks, "service-cluster-ip-range", []string{"10.0.0.0/24"}, "`networks` for the cluster IPs of services: one, or one per IP family, the default first")
	fs.StringVar(&c.ports, "service-node-port-range", "30000-32767", "range of `ports` for the node ports of services")
}

// assigner returns the Service address assigner and starts the repair of its claims.
func (c *addressConfig) assigner(n *run.Node, store services.Store) (*serviceips.Assigner, error) {
	networks, err := serviceips.ParseNetworks(c.networks)
	if err != nil {
		return nil, run.Usagef("--service-cluster-ip-range: %v", err)
	}
	ports, err := serviceips.ParsePorts(c.ports)
	if err != nil {
		return nil, run.Usagef("--service-node-port-range: %v", err)
	}
	a := serviceips.New(serviceips.Config{Store: store, Networks: networks, NodePorts: ports, Log: n.Log})
	n.Go("repairing the claims of addresses", func(ctx context.Context) error {
		ticks := time.NewTicker(serviceips.RepairEvery)
		defer ticks.Stop()
		return (&serviceips.Repair{Assigner: a}).Run(ctx, ticks.C)
	})
	return a, nil
}
