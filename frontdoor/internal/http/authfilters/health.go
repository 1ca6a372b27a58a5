package authfilters

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

const (
	// healthRefresh is the period of the authorization of health paths, healthRetry the
	// pause after a failure, and healthWait the timeout.
	healthRefresh = 5 * time.Second
	healthRetry   = time.Second
	healthWait    = 2 * time.Second
)

// openHealth caches which health paths anonymous users may read. It does not expire, so
// that health checks work while authn and authz are unavailable.
type openHealth struct {
	anonymous services.UserInfo
	paths     map[string]bool
}

// Probed serves health checks without credentials if the cached decision allows them,
// without calling other services. All other requests continue to the next stage.
func (c *Control) Probed(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		if !r.Health || !withoutCredentials(r.Request) {
			return next(w, r)
		}
		open := c.health.Load()
		if open == nil || !open.paths[r.URL.Path] {
			err := next(w, r)
			if err == nil {
				c.healthOpened()
			}
			return err
		}
		r.User, r.Caller = open.anonymous, open.anonymous
		return r.Plain(w, r)
	}
}

// healthOpened refreshes the cached decision after authz has allowed a request that it
// denies.
func (c *Control) healthOpened() {
	select {
	case c.HealthOpened <- struct{}{}:
	default:
	}
}

// withoutCredentials reports whether the request has no certificate and no header that
// could authenticate it.
func withoutCredentials(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.TLS != nil && len(r.TLS.PeerCertificates) > 0 || r.Header.Get("Upgrade") != "" {
		return false
	}
	for name := range r.Header {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			return false
		}
	}
	return true
}

// FollowHealth refreshes the decision about health paths until ctx ends.
func (c *Control) FollowHealth(ctx context.Context) error {
	for {
		pause := healthRefresh
		open, err := c.authorizeHealth(ctx)
		if err == nil {
			c.health.Store(open)
		} else {
			pause = healthRetry
		}
		select {
		case <-time.After(pause):
		case <-c.HealthOpened:
		case <-ctx.Done():
			return nil
		}
	}
}

// authorizeHealth authorizes the anonymous user for each health path. Unauthorized (401)
// from authn is a valid decision: anonymous requests are disabled for that path.
func (c *Control) authorizeHealth(ctx context.Context) (*openHealth, error) {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	open := &openHealth{paths: map[string]bool{}}
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		a, err := c.Authn.Authenticate(ctx, services.Credentials{Path: path})
		if services.IsReason(err, services.ReasonUnauthorized) {
			continue
		}
		if err != nil {
			return nil, err
		}
		decision, err := c.Authz.Authorize(ctx, services.Attributes{User: a.User, Verb: "get", Path: path})
		if err != nil {
			return nil, err
		}
		open.anonymous, open.paths[path] = a.User, decision.Allowed
	}
	return open, nil
}
