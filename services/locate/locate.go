// Package locate finds the servers of Services of the cluster, as Kubernetes does for
// webhooks and extensions: at the cluster IP or the external name of a Service, or at its
// ready endpoints. It resolves no names and connects to nothing. It serves "Admission
// plugins" and "Groups and paths" of the specification.
package locate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Reference names a port of a Service, by its number or its name.
type Reference struct {
	Namespace, Name string
	Port            intstr.IntOrString
}

func (r Reference) String() string { return fmt.Sprintf("service/%s in %q", r.Name, r.Namespace) }

// ServerName is the name in the certificates of the servers.
func (r Reference) ServerName() string { return r.Name + "." + r.Namespace + ".svc" }

// Locator finds servers.
type Locator struct {
	Store      services.Reader
	Vocabulary vocabulary.Vocabulary
	// Endpoints makes Addresses return endpoints and not the cluster IP.
	Endpoints bool
}

// externalName is the type of a Service that is a name outside of the cluster.
const externalName = "ExternalName"

// noAddress is the cluster IP of a Service without one.
const noAddress = "None"

// Service is what a Locator needs of a Service.
type Service struct {
	Spec struct {
		Type, ClusterIP, ExternalName string
		Ports                         []Port
	}
}

// Port is a port of a Service.
type Port struct {
	Name string
	Port int32
}

// Find returns a port of the Service; ok is false if it has none such.
func (s *Service) Find(wanted intstr.IntOrString) (found Port, ok bool) {
	for _, p := range s.Spec.Ports {
		if wanted.Type == intstr.Int && p.Port == wanted.IntVal || wanted.Type == intstr.String && p.Name == wanted.StrVal {
			return p, true
		}
	}
	return Port{}, false
}

// outside returns the address of a Service of type ExternalName, which need not list its
// ports.
func (s *Service) outside(r Reference) (string, error) {
	port, listed := s.Find(r.Port)
	switch {
	case s.Spec.ExternalName == "":
		return "", fmt.Errorf("%s has no external name", r)
	case !listed && r.Port.Type == intstr.String:
		return "", noPort(r)
	case !listed:
		port.Port = r.Port.IntVal
	}
	return join(s.Spec.ExternalName, port.Port), nil
}

func join(host string, port int32) string {
	return net.JoinHostPort(host, strconv.FormatInt(int64(port), 10))
}

// Service reads the Service that a reference names. The error is NotFound (404) if there is
// none.
func (l Locator) Service(ctx context.Context, r Reference) (*Service, error) {
	s := &Service{}
	err := l.read(ctx, "services", r, s)
	if services.IsReason(err, services.ReasonNotFound) {
		err = services.NotFound("", "service", r.Name) // as kube-apiserver names it
	}
	return s, err
}

// noPort returns the error of a Service without the port, with the message of kube-apiserver.
func noPort(r Reference) error {
	return fmt.Errorf("no service port %s found for service %q", r.Port.String(), r.Name)
}

func (l Locator) read(ctx context.Context, plural string, r Reference, into any) error {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: plural}, Namespace: r.Namespace, Name: r.Name}
	stored, err := l.Store.Get(ctx, services.GetRequest{Key: key, Read: services.Read{Mode: services.AnyRevision}})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(stored.JSON, into); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

// Addresses returns where requests for a reference go, each as host:port: to the cluster IP
// or the external name or, with Endpoints, to one of the ready endpoints. There is at least
// one if there is no error.
func (l Locator) Addresses(ctx context.Context, r Reference) ([]string, error) {
	s, err := l.Service(ctx, r)
	if err != nil {
		return nil, err
	}
	port, ok := s.Find(r.Port)
	switch {
	case s.Spec.Type == externalName && l.Endpoints:
		return nil, fmt.Errorf("unsupported service type %q", s.Spec.Type)
	case s.Spec.Type == externalName:
		address, err := s.outside(r)
		return []string{address}, err
	case !ok:
		return nil, noPort(r)
	case l.Endpoints:
		return l.endpoints(ctx, r, port)
	case s.Spec.ClusterIP == "" || s.Spec.ClusterIP == noAddress:
		return nil, errors.New(`cannot route to service with ClusterIP "None"`)
	}
	return []string{join(s.Spec.ClusterIP, port.Port)}, nil
}

// One returns one of Addresses, at random.
func (l Locator) One(ctx context.Context, r Reference) (string, error) {
	found, err := l.Addresses(ctx, r)
	if err != nil {
		return "", err
	}
	return pick(found), nil
}

func pick(addresses []string) string {
	return addresses[rand.IntN(len(addresses))] //nolint:gosec // spreads load
}

// Replicas returns an address for each server of a reference, for callers that keep a
// connection to each: the ready endpoints, the external name, or the cluster IP of a Service
// for which nobody keeps endpoints.
func (l Locator) Replicas(ctx context.Context, r Reference) ([]string, error) {
	s, err := l.Service(ctx, r)
	if err != nil {
		return nil, err
	}
	if s.Spec.Type == externalName {
		address, err := s.outside(r)
		return []string{address}, err
	}
	port, ok := s.Find(r.Port)
	if !ok {
		return nil, noPort(r)
	}
	found, err := l.endpoints(ctx, r, port)
	if errors.Is(err, errUnknown) && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != noAddress {
		return []string{join(s.Spec.ClusterIP, port.Port)}, nil
	}
	return found, err
}
