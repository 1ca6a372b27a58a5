package connect

import (
	"net"
	"net/http"
	"net/url"
	"strconv"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// backend is where a connection goes, and how. The host of the URL has a port.
type backend struct {
	url       *url.URL
	transport *http.Transport
	// options are those of the connection, once its way has found the backend.
	options *options
}

// nodePort is the port of a node that names none.
const nodePort = 10250

// nodeHost returns the address and port at which a node serves.
func (h *Handlers) nodeHost(r *request.Request, name string) (host, port string, err error) {
	node, err := h.object(r, "nodes", "", name)
	if err != nil {
		return "", "", err
	}
	n := tree.Number(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
	if n <= 0 || n > 65535 {
		n = nodePort
	}
	addresses := tree.Objects(node, "status", "addresses")
	for _, preferred := range h.AddressTypes {
		for _, address := range addresses {
			if host := tree.Text(address, "address"); host != "" && tree.Text(address, "type") == preferred {
				return host, strconv.FormatInt(n, 10), nil
			}
		}
	}
	return "", "", services.Unavailable("no preferred addresses found; known addresses of node %q: %d", name, len(addresses))
}

// onNode returns the backend of a path at the node that runs a pod.
func (h *Handlers) onNode(r *request.Request, node string, at *url.URL) (*backend, error) {
	host, port, err := h.nodeHost(r, node)
	if err != nil {
		return nil, err
	}
	at.Scheme, at.Host = "https", net.JoinHostPort(host, port)
	return &backend{url: at, transport: h.Transports.Node(true)}, nil
}

// nodeProxy finds a node: its own port with the certificate for nodes, or another one
// as that of a pod.
func (h *Handlers) nodeProxy(r *request.Request, o *options) (*backend, error) {
	t, err := parseTarget("node", r.Name)
	if err != nil {
		return nil, err
	}
	if err := t.numbered("node"); err != nil {
		return nil, err
	}
	host, port, err := h.nodeHost(r, t.name)
	if err != nil {
		return nil, err
	}
	if t.port == "" || t.port == port {
		return &backend{url: &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port), Path: o.path}, transport: h.Transports.Node(true)}, nil
	}
	return &backend{url: &url.URL{Scheme: t.scheme, Host: net.JoinHostPort(host, t.port), Path: o.path}, transport: h.Transports.Plain}, nil
}
