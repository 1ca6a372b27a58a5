// Package authfilters holds the stages of authentication, impersonation, authorization
// and concurrency limits. It calls authn and authz for decisions about identity and
// permissions. It serves "Authentication", "Impersonation" and "Authorization notes" of
// the specification.
package authfilters

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/live"
	"github.com/portico-platform/portico/frontdoor/internal/http/permitted"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Control holds the dependencies and the state of the stages.
type Control struct {
	Authn      services.Authn
	Authz      services.Authz
	Vocabulary vocabulary.Vocabulary
	Log        *slog.Logger
	// Identities is Authn for the requests of clients. Its responses may be cached.
	Identities services.Authn
	// LongRunning are the long-running requests in progress.
	LongRunning *live.Requests
	// Namespaces determines what requests with permitted=true may read.
	Namespaces *permitted.Finder
	// CreateToConnect is set if commands, attachments and port forwarding need the verb create
	// whatever their method: a WebSocket begins with a GET, which a right to read would allow.
	CreateToConnect bool
	// Constrained is constrained impersonation; nil if only plain impersonation is served.
	Constrained *Constrained
	// Shares divides concurrent requests between priority levels, and Costs knows how much lists
	// read. Without Shares, Reads and Writes limit them. Connections limits connections, Watches open
	// watches, and Memory the bytes that requests hold.
	Shares                     *fairness.Shares
	Costs                      *fairness.Costs
	Reads, Writes, Connections *inflight.Limiter
	Watches                    *inflight.Watches
	Memory                     *ledger.Ledger
	// HealthOpened wakes FollowHealth; its capacity is one.
	HealthOpened chan struct{}

	health atomic.Pointer[openHealth]
}

// Authenticated identifies the caller (section "Authentication").
func (c *Control) Authenticated(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if f := r.Forwarded; f != nil { // which another front door has authenticated, and ends when that no longer holds
			r.User, r.Caller, r.Impersonated, r.Constraint = f.User, f.Caller, f.Impersonated, f.Constraint
			r.Audit.Annotate("portico/forwarded-by", f.From)
			return next(w, r)
		}
		credentials := services.Credentials{BearerToken: c.bearerToken(r.Header), Headers: r.Header, Path: r.URL.Path}
		if r.TLS != nil {
			for _, cert := range r.TLS.PeerCertificates {
				credentials.Certificates = append(credentials.Certificates, cert.Raw)
			}
		}
		a, err := c.Identities.Authenticate(r.Context(), credentials)
		if err != nil {
			return c.refused(r, err)
		}
		if r.LongRunning() {
			r.Live = live.NewRequest(credentials, a)
		}
		// Later stages and backends that the request is forwarded to must not see
		// credentials.
		r.Header.Del("Authorization")
		for _, name := range a.ProxyHeaders {
			r.Header.Del(name)
		}
		r.User, r.Caller, r.Credential = a.User, a.User, a.Credential.Method
		c.noteStale(r, a)
		c.noteLegacy(w, r, a.Legacy)
		return next(w, r)
	}
}

// noteStale adds an audit annotation to a request with a token that the client should have
// replaced.
func (c *Control) noteStale(r *request.Request, a services.Authentication) {
	if a.WarnAfter.IsZero() || r.Audit == nil {
		return
	}
	if late := time.Since(a.WarnAfter); late > 0 {
		r.Audit.Annotate(c.Vocabulary.Group("authentication.")+"/stale-token",
			fmt.Sprintf("subject: %s, seconds after warning threshold: %d", a.User.Name, int64(late.Seconds())))
	}
}

// bearerToken returns the token of a request, "" if there is none. A browser's
// WebSocket cannot set headers and carries it in a subprotocol.
func (c *Control) bearerToken(h http.Header) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(h.Get("Authorization")), " ")
	if strings.EqualFold(scheme, "Bearer") {
		token, _, _ := strings.Cut(rest, " ") // none after a second space, as in Kubernetes
		return token
	}
	if !strings.EqualFold(h.Get("Upgrade"), "websocket") {
		return ""
	}
	prefix := "base64url.bearer." + c.Vocabulary.Group("authorization.") + "."
	for protocol := range strings.SplitSeq(h.Get("Sec-WebSocket-Protocol"), ",") {
		if encoded, ok := strings.CutPrefix(strings.TrimSpace(protocol), prefix); ok {
			if decoded, err := base64.RawURLEncoding.DecodeString(encoded); err == nil {
				return string(decoded)
			}
		}
	}
	return ""
}

// Received reads the body of a request within the user's share of memory. The request
// has no seat yet, so that slow clients do not block others.
func (c *Control) Received(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if err := r.Receive(w, c.Memory); err != nil {
			return err
		}
		return next(w, r)
	}
}

// Authorized authorizes the request (section "Authorization notes"), unless Permitted does.
func (c *Control) Authorized(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.AcrossPermitted() {
			return next(w, r)
		}
		a := r.Attributes()
		if err := c.require(r, a, !r.Impersonated); err != nil {
			return err
		}
		if c.CreateToConnect && r.OpensStreams() && a.Verb != "create" {
			a.Verb = "create"
			if err := c.require(r, a, !r.Impersonated); err != nil {
				return err
			}
		}
		return next(w, r)
	}
}

// Registered makes a long-running request end when its caller may no longer make it. The
// context of the request then ends, and its cause is the Status.
func (c *Control) Registered(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.Live == nil {
			return next(w, r)
		}
		unregistered := r.Request
		ctx, end := context.WithCancelCause(r.Context())
		defer end(nil)
		r.Request = r.WithContext(ctx)
		if r.Permitted != nil {
			end = relist(end)
			go r.Permitted.Follow(ctx, end)
		}
		c.LongRunning.Open(r.Live, end)
		defer c.LongRunning.Close(r.Live)
		err := next(w, r)
		if why := r.Withdrawn(); why != nil && err != nil {
			err = why
		}
		r.Request = unregistered
		return err
	}
}

// require is Allow for what a request needs for as long as it runs. own is true if the user is
// the authenticated one.
func (c *Control) require(r *request.Request, a services.Attributes, own bool) error {
	decision, err := c.allow(r, a)
	if err == nil {
		c.note(r, a, decision, own)
	} else if services.IsReason(err, services.ReasonForbidden) {
		c.decided(r, decision)
	}
	return err
}

// note notes a decision that allows a request: for the audit log, and for as long as it runs. own is
// as for require.
func (c *Control) note(r *request.Request, a services.Attributes, decision services.Decision, own bool) {
	c.decided(r, decision)
	if r.Live != nil {
		r.Live.Allowed(a, decision, own)
	}
}

// decided notes a decision for the audit log.
func (c *Control) decided(r *request.Request, decision services.Decision) {
	if r.Audit != nil {
		r.Audit.Decided(c.Vocabulary.Group("authorization."), decision)
	}
}

// Allow returns Forbidden (403) if authz does not allow the attributes.
func (c *Control) Allow(r *request.Request, a services.Attributes) error {
	_, err := c.allow(r, a)
	return err
}

func (c *Control) allow(r *request.Request, a services.Attributes) (services.Decision, error) {
	decision, err := c.Authz.Authorize(r.Context(), a)
	if err != nil || decision.Allowed {
		return decision, err
	}
	c.Log.DebugContext(r.Context(), "forbidden", "user", a.User.Name, "verb", a.Verb, "resource", a.Resource, "path", a.Path, "reason", decision.Reason)
	return decision, Forbidden(a, decision)
}

// Forbidden returns the error of a denied request, with the message of kube-apiserver.
func Forbidden(a services.Attributes, decision services.Decision) *services.Status {
	if a.Path != "" {
		return &services.Status{Code: http.StatusForbidden, Reason: services.ReasonForbidden, Details: &services.StatusDetails{},
			Message: "forbidden: User \"" + a.User.Name + "\" cannot " + a.Verb + " path \"" + a.Path + "\""}
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	scope := " at the cluster scope"
	if a.Namespace != "" {
		scope = " in the namespace \"" + a.Namespace + "\""
	}
	why := "User \"" + a.User.Name + "\" cannot " + a.Verb + " resource \"" + resource + "\" in API group \"" + a.Group + "\"" + scope
	if decision.Reason != "" {
		why += ": " + decision.Reason
	}
	return services.Forbidden(a.Group, a.Resource, a.Name, why)
}
