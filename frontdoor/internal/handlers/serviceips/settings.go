package serviceips

import (
	"context"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// Settings are the flags about the addresses of Services. Register them before the other calls.
type Settings struct {
	networks []string
	ports    string
}

// Register declares the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&s.networks, "service-cluster-ip-range", []string{"10.0.0.0/24"}, "`networks` for the cluster IPs of services: one, or one per IP family, the default first")
	fs.StringVar(&s.ports, "service-node-port-range", "30000-32767", "range of `ports` for the node ports of services")
}

// Networks returns the networks of the flag. Invalid ones are usage errors.
func (s *Settings) Networks() (Networks, error) {
	networks, err := ParseNetworks(s.networks)
	if err != nil {
		return networks, run.Usagef("--service-cluster-ip-range: %v", err)
	}
	return networks, nil
}

// Open returns the assigner and starts the repair of its claims. Invalid flags are usage errors.
func (s *Settings) Open(n *run.Node, store services.Store) (*Assigner, error) {
	networks, err := s.Networks()
	if err != nil {
		return nil, err
	}
	ports, err := ParsePorts(s.ports)
	if err != nil {
		return nil, run.Usagef("--service-node-port-range: %v", err)
	}
	a := New(Config{Store: store, Networks: networks, NodePorts: ports, Log: n.Log})
	n.Go("repairing the claims of addresses", func(ctx context.Context) error {
		ticks := time.NewTicker(RepairEvery)
		defer ticks.Stop()
		return (&Repair{Assigner: a}).Run(ctx, ticks.C)
	})
	return a, nil
}
