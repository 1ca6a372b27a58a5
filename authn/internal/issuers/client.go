package issuers

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services/kit/oidchttp"
	"github.com/portico-platform/portico/services/kit/retry"
)

// keysEvery is the least pause between two requests for the keys of an issuer. Each token with an
// unknown key makes one.
const keysEvery = time.Second

// newClient returns the client of an issuer.
func newClient(c *Config, m *Metrics) *http.Client {
	t := &transport{
		RoundTripper: oidchttp.Transport(c.Roots),
		issuer:       c.Issuer.URL, metrics: m,
	}
	if c.Issuer.DiscoveryURL != "" {
		t.wellKnown = strings.TrimSuffix(c.Issuer.URL, "/") + "/.well-known/openid-configuration"
		t.discoveryURL, _ = url.Parse(c.Issuer.DiscoveryURL) // it is valid
	}
	return &http.Client{Transport: t, Timeout: oidchttp.Patience}
}

// transport bounds requests to an issuer.
type transport struct {
	http.RoundTripper
	issuer  string
	metrics *Metrics
	// wellKnown is the address that discoveryURL replaces; empty if there is none.
	wellKnown    string
	discoveryURL *url.URL
	// keysURL is where the keys are, once the issuer is discovered.
	keysURL atomic.Pointer[string]

	mu   sync.Mutex
	next time.Time // when the keys may be requested
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	address := r.URL.String()
	if t.discoveryURL != nil && r.Method == http.MethodGet && address == t.wellKnown {
		r = r.Clone(r.Context())
		r.Host, r.URL = "", t.discoveryURL
	}
	keysURL := t.keysURL.Load()
	if keysURL == nil || address != *keysURL {
		return t.RoundTripper.RoundTrip(r)
	}
	if !retry.Pause(r.Context(), t.turn()) {
		return nil, r.Context().Err()
	}
	return t.keys(r)
}

// turn returns how long to wait before the keys are requested.
func (t *transport) turn() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	wait := max(0, t.next.Sub(now))
	t.next = now.Add(wait + keysEvery)
	return wait
}

// keys requests the keys, and records what they are.
func (t *transport) keys(r *http.Request) (*http.Response, error) {
	var keys []byte
	defer func() { t.metrics.keysRequested(t.issuer, keys) }()
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusOK {
		keys = body
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
