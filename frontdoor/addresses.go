package frontdoor

import (
	"net"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/identity"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/localservices"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/ownservice/records"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/kit/run"
)

// self returns the IP address that cluster members use to reach this front door. It
// returns "" and logs a warning if neither the flags nor the host's routes provide one.
func (c *config) self(n *run.Node) (string, error) {
	if given := c.advertise; given != "" {
		if ip := net.ParseIP(given); ip == nil || ip.IsUnspecified() || ip.IsLoopback() {
			return "", run.Usagef("--advertise-address: other processes cannot reach %q", given)
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

// keepOwnService maintains the Service through which pods reach the API, with this front door among its
// endpoints, its Lease, the ranges of Services, and the APIServices of the served versions.
func (c *config) keepOwnService(n *run.Node, d *door, ip string, listening net.Addr) error {
	self, announced := records.Address{IP: ip, Port: listening.(*net.TCPAddr).Port}, d.operations.Peers.Announced(listening, ip)
	if ip != "" {
		reached := net.JoinHostPort(ip, strconv.Itoa(self.Port))
		d.reached.Store(&reached)
	}
	networks, err := c.addresses.Networks()
	if err != nil {
		return err
	}
	keeper := ownservice.New(ownservice.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes, Self: self, ClusterIP: networks.First(), Log: n.Log,
		Announced: announced, Engine: d.engine, Counted: d.countReplicas})
	n.Go("keeping the Service of the API", keeper.Run)
	n.Go("keeping the Lease of this front door", identity.New(identity.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes, Engine: d.engine,
		Host: announced.Host, Address: net.JoinHostPort(self.IP, strconv.Itoa(self.Port)), Log: n.Log,
		Off: d.gates.Refused(featuregate.Identity), Hidden: d.gates.Refused(featuregate.Interoperability), Entries: d.gates.On(featuregate.StorageVersions)}).Run)
	n.Go("keeping the ranges and addresses of Services", d.ranges.Run)
	n.Go("registering the served versions", localservices.Keeper{Config: localservices.Config{Vocabulary: n.Vocabulary, Store: d.store, Writes: d.writes,
		Changed: d.relearned, Elsewhere: d.forwarding.Serves, Log: n.Log, Engine: d.engine}}.Run)
	return nil
}
