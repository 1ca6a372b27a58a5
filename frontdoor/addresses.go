package frontdoor

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/identity"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/localservices"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// addressConfig holds the flags about the addresses of Services.
type addressConfig struct {
	networks []string
	ports    string
	// advertise is the IP address that cluster members use to reach this front door.
	advertise string
}

func (c *addressConfig) register(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.networks, "service-cluster-ip-range", []string{"10.0.0.0/24"}, "`networks` for the cluster IPs of services: one, or one per IP family, the default first")
	fs.StringVar(&c.advertise, "advertise-address", "", "`IP` address at which members of the cluster reach this front door; --bind-address, or that of the host's default interface when empty")
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

// self returns the IP address that cluster members use to reach this front door. It
// returns "" and logs a warning if neither the flags nor the host's routes provide one.
func (c *config) self(n *run.Node) (string, error) {
	if given := c.addresses.advertise; given != "" {
		if ip := net.ParseIP(given); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
			return "", run.Usagef("--advertise-address: %q is no address that others reach", given)
		}
		return given, nil
	}
	ip, err := utilnet.ResolveBindAddress(net.ParseIP(c.listener.BindAddress))
	if err != nil {
		n.Log.Warn("this front door is not among the endpoints of the API's Service: set --advertise-address", "error", err)
		return "", nil
	}
	return ip.String(), nil
}

// keepOwnService maintains the Service through which pods reach the API, with this front
// door among its endpoints, its Lease, the ranges of Services, and the APIServices of the served
// versions.
func (c *config) keepOwnService(n *run.Node, d *door, self ownservice.Address) error {
	networks, err := serviceips.ParseNetworks(c.addresses.networks)
	if err != nil {
		return run.Usagef("--service-cluster-ip-range: %v", err)
	}
	keeper := ownservice.New(ownservice.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes, Self: self, ClusterIP: networks.First(), Log: n.Log,
		Engine: d.engine, Counted: d.countReplicas})
	n.Go("keeping the Service of the API", keeper.Run)
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	n.Go("keeping the Lease of this front door", identity.New(identity.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes, Engine: d.engine,
		Host: host, Address: net.JoinHostPort(self.IP, strconv.Itoa(self.Port)), Log: n.Log}).Run)
	n.Go("keeping the ranges and addresses of Services", d.ranges.Run)
	n.Go("registering the served versions", localservices.Keeper{Config: localservices.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes,
		Changed: d.relearned, Log: n.Log, Engine: d.engine}}.Run)
	return nil
}
