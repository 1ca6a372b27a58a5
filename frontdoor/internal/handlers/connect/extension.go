package connect

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/util/proxy"
	"k8s.io/client-go/transport"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/crossing"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/connect/outbound"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// Extension is a server that serves a group version of the API.
type Extension struct {
	Host      string // address and port
	Transport *http.Transport
	// Hidden are the names and prefixes of names of further headers that must not cross,
	// because the extension may take them for the word of an authenticating proxy.
	Hidden []string
	// Plain is true for a Transport whose connections have their TLS already, and Name adds what
	// names the user to a header; nil for the headers of an authenticating proxy.
	Plain bool
	Name  func(http.Header) error
}

// Extend proxies a request to an extension, in the name of its user. Redirects are refused, since they would
// lead clients with their credentials to other servers. It returns Unavailable (503) if the extension cannot be
// reached.
func (h *Handlers) Extend(w http.ResponseWriter, r *request.Request, to Extension) error {
	scheme := "https://"
	if to.Plain {
		scheme = "http://"
	}
	at, err := url.Parse(scheme + to.Host + r.ExtensionPath())
	if err != nil {
		return services.BadRequest("%v", err)
	}
	at.RawQuery = r.Query.Encode() // what could not be parsed was not authorized
	run := func(ctx context.Context) error { return unreachable(ctx, h.extend(ctx, w, r, to, at)) }
	if !r.LongRunning() {
		return run(r.Context())
	}
	return h.open.serve(r, h.Lifetime, run)
}

func (h *Handlers) extend(ctx context.Context, w http.ResponseWriter, r *request.Request, to Extension, at *url.URL) error {
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	header, err := to.inTheNameOf(r)
	if err != nil {
		return err
	}
	out := &writer{ResponseWriter: w, answers: to.answers(r), start: r.Begin, gone: gone}
	failed := &failure{}
	if httpstream.IsUpgradeRequest(r.Request) {
		upgrade, err := outbound.Dial(ctx, to.Transport, at, out.upgradeHeader)
		if err != nil {
			return err
		}
		defer upgrade.Close()
		out.upgraded = upgrade.Status
		plain := *at
		plain.Scheme = "http" // the connection has its TLS already
		asked := to.asked(ctx, r, crossing.Upgrading(header), at)
		handler := proxy.NewUpgradeAwareHandler(&plain, upgrade.Transport(), false, true, failed)
		return failed.of(out, func() { handler.ServeHTTP(out, asked) })
	}
	out.start = started(r)
	asked := to.asked(ctx, r, header, at)
	handler := proxy.NewUpgradeAwareHandler(at, to.Transport, false, false, failed)
	handler.RejectForwardingRedirects = true
	return failed.of(out, func() { handler.ServeHTTP(out, asked) })
}

// asked returns the request that the extension gets.
func (to Extension) asked(ctx context.Context, r *request.Request, header http.Header, at *url.URL) *http.Request {
	asked := handedOn(ctx, r, header)
	asked.URL, asked.Host = at, at.Host
	return asked
}

// answers returns which headers of its responses reach the client. What another front door proxies itself
// is not its own word.
func (to Extension) answers(r *request.Request) crossing.Answers {
	if to.Plain && !r.ToConnection() {
		return crossing.FrontDoor
	}
	return crossing.Extension
}

// started returns what happens when the response of an extension begins. A watch then
// returns its seat; other long responses keep it.
func started(r *request.Request) func(int) {
	switch {
	case r.Verb == "watch":
		return r.Underway
	case r.LongRunning():
		return r.Begin
	}
	return func(int) {}
}

// inTheNameOf returns headers that name the user of a request. Release 1.21 does not send
// the uid.
func (to Extension) inTheNameOf(r *request.Request) (http.Header, error) {
	h := crossing.Request(r.Header, to.Hidden...)
	if to.Name != nil {
		for _, name := range []string{"X-Forwarded-For", "X-Real-Ip"} { // for the audit log of another front door
			if values := r.Header.Values(name); to.Plain && len(values) > 0 {
				h[name] = values
			}
		}
		return h, to.Name(h)
	}
	named := &http.Request{Header: h}
	transport.SetAuthProxyHeaders(named, r.User.Name, "", r.User.Groups, r.User.Extra)
	return named.Header, nil
}

// unreachable makes the errors of a connection to an extension a 503. An error that the
// request itself has caused, such as its deadline, is unchanged.
func unreachable(ctx context.Context, err error) error {
	var status *services.Status
	switch {
	case err == nil || errors.Is(err, errDropped):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &status) && status.Code < http.StatusInternalServerError:
		return err
	}
	return services.Unavailable("error trying to reach service: %v", err)
}
