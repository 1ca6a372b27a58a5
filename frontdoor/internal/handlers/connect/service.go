package connect

import (
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// maxCandidates bounds the addresses whose pods are read for one request.
const maxCandidates = 20

// serviceProxy finds a ready endpoint of a service at random. Only addresses of pods of the same namespace
// count: a user who may write endpoints must not thereby choose any address.
func (h *Handlers) serviceProxy(r *request.Request, o *options) (*backend, error) {
	t, err := parseTarget("service", r.Name)
	if err != nil {
		return nil, err
	}
	port, err := h.servicePort(r, t)
	if err != nil {
		return nil, err
	}
	endpoints, err := h.object(r, "endpoints", r.Namespace, t.name)
	if err != nil {
		return nil, err
	}
	found := candidates(endpoints, port)
	rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	for _, c := range found[:min(len(found), maxCandidates)] {
		valid, err := h.ofPod(r, c)
		if err != nil {
			return nil, err
		}
		if valid {
			host := net.JoinHostPort(c.ip, strconv.FormatInt(c.port, 10))
			return &backend{url: &url.URL{Scheme: t.scheme, Host: host, Path: o.path}, transport: h.Transports.Plain}, h.refuse(c.ip)
		}
	}
	return nil, services.Unavailable("no endpoints available for service %q", r.Name)
}

// servicePort returns the name of the port that a target means.
func (h *Handlers) servicePort(r *request.Request, t target) (string, error) {
	number := portNumber(t.port)
	if number == 0 {
		return t.port, nil
	}
	service, err := h.object(r, "services", r.Namespace, t.name)
	if err != nil {
		return "", err
	}
	for _, port := range tree.Objects(service, "spec", "ports") {
		if tree.Number(port, "port") == int64(number) {
			return tree.Text(port, "name"), nil
		}
	}
	return "", services.Unavailable("no service port %d found for service %q", number, t.name)
}

// candidate is a ready address of a service.
type candidate struct {
	ip        string
	port      int64
	reference map[string]any // the object that has the address
}

// candidates returns the ready addresses that have a port of that name.
func candidates(endpoints map[string]any, port string) (found []candidate) {
	for _, subset := range tree.Objects(endpoints, "subsets") {
		for _, p := range tree.Objects(subset, "ports") {
			if tree.Text(p, "name") != port {
				continue
			}
			for _, address := range tree.Objects(subset, "addresses") {
				found = append(found, candidate{tree.Text(address, "ip"), tree.Number(p, "port"), tree.Child(address, "targetRef")})
			}
		}
	}
	return found
}

// ofPod reports whether a pod of the namespace has the address.
func (h *Handlers) ofPod(r *request.Request, c candidate) (bool, error) {
	name := tree.Text(c.reference, "name")
	if name == "" || tree.Text(c.reference, "namespace") != r.Namespace {
		return false, nil
	}
	pod, err := h.object(r, "pods", r.Namespace, name)
	if services.IsReason(err, services.ReasonNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.Contains(podAddresses(pod), c.ip), nil
}
