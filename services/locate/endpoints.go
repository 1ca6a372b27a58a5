package locate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// maxReplicas bounds the endpoints of one Service that are used.
const maxReplicas = 256

// errUnknown means that neither EndpointSlices nor Endpoints of a Service exist.
var errUnknown = errors.New("no endpoints available")

// endpoints is what a Locator needs of Endpoints.
type endpoints struct {
	Subsets []struct {
		Addresses []struct{ IP string }
		Ports     []Port
	}
}

func (e *endpoints) ready(port string) (addresses []string) {
	for _, subset := range e.Subsets {
		for _, p := range subset.Ports {
			if p.Name != port {
				continue
			}
			for _, a := range subset.Addresses {
				addresses = append(addresses, join(a.IP, p.Port))
			}
		}
	}
	return addresses
}

// slice is what a Locator needs of an EndpointSlice.
type slice struct {
	AddressType string
	Endpoints   []struct {
		Addresses  []string
		Conditions struct{ Ready *bool }
	}
	Ports []Port
}

// ready returns the addresses of the endpoints that are ready, or of which nobody knows
// whether they are. The addresses of an endpoint are interchangeable. Those that are names
// do not count: whoever may write slices could thereby choose any server.
func (s *slice) ready(port string) (addresses []string) {
	if s.AddressType != "IPv4" && s.AddressType != "IPv6" {
		return nil
	}
	for _, p := range s.Ports {
		if p.Name != port || p.Port == 0 {
			continue
		}
		for _, e := range s.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				addresses = append(addresses, join(e.Addresses[0], p.Port))
			}
		}
	}
	return addresses
}

// Ready returns the ready endpoints of a port of a Service, sorted. known is false if nobody
// keeps endpoints of the Service. EndpointSlices count if there are any, else Endpoints.
func (l Locator) Ready(ctx context.Context, r Reference, port Port) (addresses []string, known bool, err error) {
	slicesOf := services.ListRequest{GroupResource: resource.GroupResource{Group: l.Vocabulary.Group("discovery."), Resource: "endpointslices"}, Namespace: r.Namespace,
		LabelSelector: l.Vocabulary.Qualified("", "service-name") + "=" + r.Name, Read: services.Read{Mode: services.AnyRevision}, Limit: maxReplicas}
	page, err := l.Store.List(ctx, slicesOf)
	if err != nil {
		return nil, false, err
	}
	for _, o := range page.Objects {
		var s slice
		if err := json.Unmarshal(o.JSON, &s); err != nil {
			return nil, false, fmt.Errorf("reading %s: %w", o.Key, err)
		}
		addresses = append(addresses, s.ready(port.Name)...)
	}
	if len(page.Objects) == 0 {
		var e endpoints
		switch err := l.read(ctx, "endpoints", r, &e); {
		case services.IsReason(err, services.ReasonNotFound):
			return nil, false, nil
		case err != nil:
			return nil, false, err
		}
		addresses = e.ready(port.Name)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	return addresses[:min(len(addresses), maxReplicas)], true, nil
}

// endpoints is Ready with an error if there is no ready endpoint, errUnknown if nobody keeps
// them.
func (l Locator) endpoints(ctx context.Context, r Reference, port Port) ([]string, error) {
	found, known, err := l.Ready(ctx, r, port)
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, fmt.Errorf("%w for service %q", errUnknown, r.Name)
	case len(found) == 0:
		return nil, fmt.Errorf("no endpoints available for service %q", r.Name)
	}
	return found, nil
}
