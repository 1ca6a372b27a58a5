package extensions

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// locator finds the servers of an extension: the cluster IP or the external name of its
// service or, with Endpoints, the address of an endpoint.
type locator struct {
	store     services.Reader
	endpoints bool
}

// service is what a locator needs of a Service.
type service struct {
	Spec struct {
		Type, ClusterIP, ExternalName string
		Ports                         []struct {
			Name string
			Port int64
		}
	}
}

// portName returns the name of a port; ok is false if the service has no such port.
func (s *service) portName(port int64) (name string, ok bool) {
	for _, p := range s.Spec.Ports {
		if p.Port == port {
			return p.Name, true
		}
	}
	return "", false
}

// endpoints is what a locator needs of Endpoints.
type endpoints struct {
	Subsets []struct {
		Addresses []struct{ IP string }
		Ports     []struct {
			Name string
			Port int64
		}
	}
}

// of returns the addresses that have a port of that name.
func (e *endpoints) of(port string) (addresses []string) {
	for _, subset := range e.Subsets {
		for _, p := range subset.Ports {
			if p.Name != port {
				continue
			}
			for _, address := range subset.Addresses {
				addresses = append(addresses, join(address.IP, p.Port))
			}
		}
	}
	return addresses
}

func join(host string, port int64) string {
	return net.JoinHostPort(host, strconv.FormatInt(port, 10))
}

// read reads an object that a reference names into one of the types above.
func (l locator) read(ctx context.Context, plural string, r reference, into any) error {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: plural}, Namespace: r.namespace, Name: r.name}
	stored, err := l.store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
	if err != nil {
		return err
	}
	return json.Unmarshal(stored.JSON, into)
}

// find returns the address and port of one server.
func (l locator) find(ctx context.Context, r reference) (string, error) {
	var s service
	if err := l.read(ctx, "services", r, &s); err != nil {
		return "", err
	}
	if s.Spec.Type == "ExternalName" {
		if l.endpoints {
			return "", fmt.Errorf("%s has the type ExternalName, which has no endpoints", r)
		}
		return join(s.Spec.ExternalName, r.port), nil
	}
	name, ok := s.portName(r.port)
	switch {
	case !ok:
		return "", fmt.Errorf("%s has no port %d", r, r.port)
	case l.endpoints:
		return l.findEndpoint(ctx, r, name)
	case s.Spec.ClusterIP == "" || s.Spec.ClusterIP == "None":
		return "", fmt.Errorf("%s has no cluster IP", r)
	}
	return join(s.Spec.ClusterIP, r.port), nil
}

// findEndpoint returns a ready endpoint at random.
func (l locator) findEndpoint(ctx context.Context, r reference, port string) (string, error) {
	var e endpoints
	if err := l.read(ctx, "endpoints", r, &e); err != nil {
		return "", err
	}
	addresses := e.of(port)
	if len(addresses) == 0 {
		return "", fmt.Errorf("%s has no endpoints", r)
	}
	return addresses[rand.IntN(len(addresses))], nil //nolint:gosec // spreads load
}
