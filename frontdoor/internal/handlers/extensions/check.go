package extensions

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/transport"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// checkTick is how often the front door looks whether checks are due.
	checkTick = 500 * time.Millisecond
	// An extension that is available is checked again after checkAgain, another one after
	// checkSoon.
	checkAgain = 15 * time.Second
	checkSoon  = 2 * time.Second
	// checkTimeout bounds one request of a check, checkAttempts is the number of requests, and
	// checksAtOnce that of concurrent checks.
	checkTimeout  = 2 * time.Second
	checkAttempts = 3
	checksAtOnce  = 8
	// messageAgain is how soon a condition is written again of which only the message
	// differs: it may name the ports of connections.
	messageAgain = time.Minute
)

// Check keeps the condition Available of all APIServices up to date, until ctx ends, and
// then returns nil. Of several front doors, one does it at a time.
func (h *Handlers) Check(ctx context.Context) error {
	ticks := time.NewTicker(checkTick)
	defer ticks.Stop()
	l, slots := newLease(h.Store), make(chan struct{}, checksAtOnce)
	var renewed time.Time
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			if err := l.leave(ctx); err != nil {
				h.Log.Debug("releasing the lease of the checks failed, another front door will take over when it expires", "error", err)
			}
			return nil
		}
		if len(*h.table.Load()) == 0 {
			continue // nothing is checked, so nobody needs the lease
		}
		if now := h.now(); now.Sub(renewed) >= renewEvery {
			renewed = now
			if _, err := l.renew(ctx, now); err != nil && ctx.Err() == nil {
				h.Log.Warn("renewing the lease of the checks of extensions failed, retrying", "error", err)
			}
		}
		if l.mine {
			h.startChecks(ctx, slots)
		}
	}
}

// startChecks starts the checks that are due, as long as there are slots.
func (h *Handlers) startChecks(ctx context.Context, slots chan struct{}) {
	for _, x := range *h.table.Load() {
		if !x.due(h.now()) {
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			return
		}
		x.begin()
		go func() {
			defer func() { <-slots }()
			c := h.check(ctx, x)
			x.end(h.now(), c)
			if ctx.Err() != nil {
				return
			}
			if err := h.report(ctx, x, c); err != nil && ctx.Err() == nil {
				h.Log.Warn("writing the condition of an extension failed, retrying", "name", x.name, "error", err)
			}
		}()
	}
}

// schedule is when an extension is checked.
type schedule struct {
	next    time.Time
	running bool
	checked checked
	// reported is when the condition was last written.
	reported time.Time
}

// checked is what a check depends on.
type checked struct {
	service     locate.Reference
	authorities string
	insecure    bool
}

func (r registration) checked() checked { return checked{r.service, r.authorities, r.insecure} }

// due reports whether an extension is to be checked: when it is time, and when its
// registration has changed or lost its condition.
func (x *extension) due(now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.unread == nil && !x.running && (!now.Before(x.next) || x.schedule.checked != x.registration.checked() || x.condition.status == "")
}

func (x *extension) begin() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running, x.schedule.checked = true, x.registration.checked()
}

func (x *extension) end(now time.Time, c condition) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.running, x.next = false, now.Add(checkSoon)
	if c.status == "True" {
		x.next = now.Add(checkAgain)
	}
}

// check returns the condition of an APIService, with the reasons of Kubernetes.
func (h *Handlers) check(ctx context.Context, x *extension) condition {
	if x.local {
		return localCondition
	}
	if h.Engine().Types.BuiltInVersion(x.group, x.version) {
		return unavailable("BuiltIn", fmt.Sprintf("%s is built in and not proxied to %s", x.groupVersion(), x.service))
	}
	ctx, cancel := context.WithTimeout(ctx, checkAttempts*checkTimeout)
	defer cancel()
	if c := h.checkService(ctx, x.service); c != passed {
		return c
	}
	if err := x.respond(ctx); err != nil {
		return unavailable("FailedDiscoveryCheck", err.Error())
	}
	return passed
}

// checkService checks what the objects of the cluster say about a service.
func (h *Handlers) checkService(ctx context.Context, r locate.Reference) condition {
	s, err := h.Services.Service(ctx, r)
	switch {
	case services.IsReason(err, services.ReasonNotFound):
		return unavailable("ServiceNotFound", fmt.Sprintf("%s is not present", r))
	case err != nil:
		return unknown("ServiceAccessError", fmt.Sprintf("%s cannot be checked due to: %v", r, err))
	case s.Spec.Type != "ClusterIP" && s.Spec.Type != "":
		return passed
	}
	port, ok := s.Find(r.Port)
	if !ok {
		return unavailable("ServicePortError", fmt.Sprintf("%s is not listening on port %d", r, r.Port.IntVal))
	}
	ready, known, err := h.Services.Ready(ctx, r, port)
	switch {
	case err != nil:
		return unknown("EndpointsAccessError", fmt.Sprintf("%s cannot be checked due to: %v", r, err))
	case !known:
		return unavailable("EndpointsNotFound", fmt.Sprintf("cannot find endpoints for %s", r))
	case len(ready) == 0:
		return unavailable("MissingEndpoints", fmt.Sprintf("endpoints for %s have no addresses with port name %q", r, port.Name))
	}
	return passed
}

// respond returns nil if a server of the extension responds for its group version. A failed
// request is repeated, since a service may have several servers.
func (x *extension) respond(ctx context.Context) (err error) {
	for range checkAttempts {
		attempt, cancel := context.WithTimeout(ctx, checkTimeout)
		err = x.ping(attempt)
		cancel()
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (x *extension) ping(ctx context.Context) error {
	response, err := x.get(ctx, "/apis/"+x.groupVersion(), nil)
	if err != nil {
		return fmt.Errorf("failing or missing response from %s: %w", x.service, err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, ledger.ExtensionResources.Bytes) // so that the connection is kept
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("bad status from %s: %d%s", x.service, response.StatusCode, x.withoutIdentity(response.StatusCode))
	}
	return nil
}

// withoutIdentity says why an extension may refuse a request, if the front door has no certificate.
func (x *extension) withoutIdentity(code int) string {
	if code != http.StatusUnauthorized && code != http.StatusForbidden || x.handlers.identity() != nil {
		return ""
	}
	return "; the request has no client certificate, because --proxy-client-cert-file is not set"
}

// get requests a document of the extension as the front door itself.
func (x *extension) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	host, over, err := x.way(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		r.Header[name] = values
	}
	transport.SetAuthProxyHeaders(r, "system:"+x.handlers.Vocabulary.Namespace("aggregator"), "", []string{services.GroupMasters}, nil)
	return over.RoundTrip(r) // which follows no redirects
}

// report writes the condition if it differs from that of the object.
func (h *Handlers) report(ctx context.Context, x *extension, c condition) error {
	if c == x.condition || c.status == x.condition.status && c.reason == x.condition.reason && h.now().Sub(x.lastReport()) < messageAgain {
		return nil
	}
	e := h.Engine()
	t, ok := e.Types.ByKind(h.resource().Group, "v1", "APIService")
	if !ok {
		return nil // disabled by --runtime-config
	}
	err := h.Writes.Amend(ctx, amend.Amendment{Engine: e, Type: t, Key: resource.Key{GroupResource: h.resource(), Name: x.name},
		Change: func(object map[string]any) error {
			if tree.Text(object, "metadata", "uid") != x.uid {
				return nil
			}
			before := typesystem.Copy(object)
			c.set(object, h.now())
			return e.Merge.Track(fieldmanager.Change{Type: t, Live: before, New: object, Manager: h.Vocabulary.Namespace("apiserver"), Subresource: "status"})
		}})
	if services.IsReason(err, services.ReasonNotFound) { // deleted in the meantime
		return nil
	}
	if err == nil {
		h.Log.Info("extension checked", "name", x.name, "available", c.status, "reason", c.reason, "message", c.message)
		h.metrics.observe(x, c)
		x.mu.Lock()
		x.reported = h.now()
		x.mu.Unlock()
	}
	return err
}

func (x *extension) lastReport() time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reported
}
