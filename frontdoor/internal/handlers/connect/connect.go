// Package connect serves the subresources that proxy a connection: logs, exec, attach and port forwarding
// through the node of a pod, and proxies to nodes, pods and services. It decides where a connection goes and
// what of a request and its response crosses it. Whether an address may be reached is decided by package
// outbound. It never reads what a connection transports. It serves "Endpoints" and "Admission plugins" of the
// specification.
package connect

import (
	"context"
	"net/http"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/admit"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// Handlers serve connections.
type Handlers struct {
	Store     services.Reader
	Admission services.Admission
	// Policy decides which addresses may be reached, over Transports.
	Policy     outbound.Policy
	Transports *outbound.Transports
	// AddressTypes are the types of the addresses of a node, the preferred one first.
	AddressTypes []string
	// Lifetime bounds a connection; 0 for no bound.
	Lifetime time.Duration

	open sessions
}

// Of returns what serves a request; nil if it is not for a connection.
func (h *Handlers) Of(r *request.Request) request.Handler {
	switch {
	case r.Type == nil || r.Subresource == nil:
		return nil
	case r.LogOfPod():
		return h.log
	case r.Subresource.Connect:
		return h.connect
	}
	return nil
}

// connect asks admission, with the options as the object, finds the backend and hands
// the connection on. Admission may change the options.
func (h *Handlers) connect(w http.ResponseWriter, r *request.Request) error {
	way, ok := h.ways()[r.Subresource.Kind]
	if !ok || r.Subpath != "" && !way.proxy {
		return request.NoPath()
	}
	if !way.proxy && r.Method != http.MethodGet && r.Method != http.MethodPost {
		return request.NoMethod()
	}
	if r.Query.Has("dryRun") {
		return services.BadRequest("dryRun is not supported")
	}
	o, err := parseOptions(r)
	if err != nil {
		return err
	}
	if err := h.admit(w, r, o); err != nil {
		return err
	}
	to, err := way.find(r, o)
	if err != nil {
		return err
	}
	to.options = o
	r.Engine = r.Engine.Lasting(r.Type)
	return h.open.serve(r, h.Lifetime, func(ctx context.Context) error {
		if way.proxy {
			return h.proxy(ctx, w, r, to)
		}
		return h.upgrade(ctx, w, r, to)
	})
}

// way is how one kind of connection finds its backend.
type way struct {
	find  func(*request.Request, *options) (*backend, error)
	proxy bool // any request may be handed on; else only one for an upgrade
}

// ways returns them by the kind of their options.
func (h *Handlers) ways() map[string]way {
	return map[string]way{
		"PodExecOptions":        {find: h.exec},
		"PodAttachOptions":      {find: h.exec},
		"PodPortForwardOptions": {find: h.portForward},
		"PodProxyOptions":       {find: h.podProxy, proxy: true},
		"ServiceProxyOptions":   {find: h.serviceProxy, proxy: true},
		"NodeProxyOptions":      {find: h.nodeProxy, proxy: true},
	}
}

// admit asks admission, with the options as the object, and takes its changes. Its
// warnings go into the headers of w.
func (h *Handlers) admit(w http.ResponseWriter, r *request.Request, o *options) error {
	call := admit.Connect(h.Admission, r)
	defer call.SendNotes(w.Header())
	review := call.Review(admit.Subject{Operation: services.OperationConnect, Type: r.Engine.BodyType(r.Type, r.Subresource),
		Namespace: r.Namespace, Name: r.Name})
	raw, err := o.encode()
	if err != nil {
		return err
	}
	changed, err := review.Mutate(r.Context(), admit.Object{JSON: raw})
	if err != nil {
		return err
	}
	if changed != nil {
		if err := o.decode(changed); err != nil {
			return err
		}
		raw = changed
	}
	return review.Validate(r.Context(), admit.Object{JSON: raw})
}

// object reads an object of the group of pods and nodes.
func (h *Handlers) object(r *request.Request, plural, namespace, name string) (map[string]any, error) {
	t, ok := r.Engine.Types.Lookup(r.Type.Group, r.Type.Version, plural)
	if !ok {
		return nil, request.NoPath()
	}
	stored, err := h.Store.Get(r.Context(), services.GetRequest{Key: resource.Key{GroupResource: t.Key, Namespace: namespace, Name: name}})
	if err != nil {
		return nil, err
	}
	return r.Engine.DecodeStored(r.Context(), stored, t)
}

// refuse returns a BadRequest unless the address, which a client has chosen, may be
// reached.
func (h *Handlers) refuse(address string) error {
	if h.Policy.CheckText(address) != nil {
		return services.BadRequest("address not allowed")
	}
	return nil
}

// Close ends all connections, and returns when they have ended or with ctx.
func (h *Handlers) Close(ctx context.Context) { h.open.close(ctx) }

// Open returns the number of open connections.
func (h *Handlers) Open() int { return h.open.count() }
