package connect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/crossing"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// errDropped is the error of a backend that ends its response in the middle.
var errDropped = errors.New("the backend ended its response before it was complete")

// proxy forwards a request, and rewrites the addresses in redirects and HTML so that they lead through the
// proxy again. Redirects are not followed.
func (h *Handlers) proxy(ctx context.Context, w http.ResponseWriter, r *request.Request, to *backend) error {
	if httpstream.IsUpgradeRequest(r.Request) {
		return h.upgrade(ctx, w, r, to)
	}
	out := &writer{ResponseWriter: w, answers: crossing.Content, start: r.Begin}
	asked := handedOn(ctx, r, crossing.Request(r.Header))
	failed := &failure{}
	handler := proxy.NewUpgradeAwareHandler(to.url, bounded{to.transport}, true, false, failed)
	return failed.of(out, func() { handler.ServeHTTP(out, asked) })
}

// upgrade connects a client that wants to upgrade its connection with a backend.
func (h *Handlers) upgrade(ctx context.Context, w http.ResponseWriter, r *request.Request, to *backend) error {
	if !httpstream.IsUpgradeRequest(r.Request) {
		return services.BadRequest("Upgrade request required")
	}
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	out := &writer{ResponseWriter: w, answers: crossing.Content, start: r.Begin, gone: gone,
		protocol: r.Header.Get("Upgrade"), ended: func() string { return endOf(ctx) }}
	upgrade, err := outbound.Dial(ctx, to.transport, to.url, out.upgradeHeader)
	if err != nil {
		return statusOf(fmt.Errorf("error dialing backend: %w", err))
	}
	defer upgrade.Close()
	out.upgraded = upgrade.Status
	if tunnels(r) { // whose connection can only be closed by the library once the client has sent something
		out.within = ctx
	}
	asked := handedOn(ctx, r, crossing.Upgrading(crossing.Request(r.Header)))
	at := *to.url
	at.Scheme = "http" // the connection has its TLS already
	failed := &failure{}
	handler := proxy.NewUpgradeAwareHandler(withQuery(&at, r), upgrade.Transport(), false, true, failed)
	return failed.of(out, func() { translated(r, to.options, handler).ServeHTTP(out, asked) })
}

// handedOn returns the request that a backend gets. Trailers do not cross: servers may take them for headers.
func handedOn(ctx context.Context, r *request.Request, header http.Header) *http.Request {
	asked := r.Request.WithContext(quiet(ctx))
	asked.Header, asked.Trailer = header, nil
	return asked
}

// endOf returns why the front door has ended a connection; empty if it has not.
func endOf(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause.Error()
	}
	return ""
}

// withQuery adds the query of a request that is forwarded unchanged: the address of a node has its own query.
func withQuery(at *url.URL, r *request.Request) *url.URL {
	if r.Subresource.Name == "proxy" {
		at.RawQuery = r.URL.RawQuery
	}
	return at
}

// quiet returns a context whose logger writes nothing: what fails is in the answer, and
// headers must not be in a log.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// failure takes the error of a handler that answers requests.
type failure struct{ err error }

// Error implements proxy.ErrorResponder.
func (f *failure) Error(_ http.ResponseWriter, _ *http.Request, err error) { f.err = err }

// of runs a handler that writes to out and returns its error as a Status. Such a handler panics when a
// response ends in the middle.
func (f *failure) of(out *writer, serve func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // the identity is the point
				panic(p)
			}
			err = errDropped
		}
	}()
	serve()
	out.finish()
	return statusOf(f.err)
}

// statusOf returns the Status of an error of a library.
func statusOf(err error) error {
	var known apierrors.APIStatus
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		s := known.Status()
		return &services.Status{Code: s.Code, Reason: string(s.Reason), Message: s.Message}
	}
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError, Message: err.Error()}
}
