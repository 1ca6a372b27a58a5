package issuers

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/services/kit/retry"
)

const (
	// patience bounds one request to an issuer.
	patience = 10 * time.Second
	// maxDocument is the size of the largest document of an issuer, in bytes.
	maxDocument = 1 << 20
	// keysEvery is the least pause between two requests for the keys of an issuer. Each token
	// with an unknown key makes one.
	keysEvery = time.Second
)

// newClient returns the client of an issuer.
func newClient(c *Config, m *Metrics) *http.Client {
	t := &transport{
		RoundTripper: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSClientConfig:     &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: patience, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true,
		},
		issuer: c.Issuer.URL, metrics: m,
	}
	if c.Issuer.DiscoveryURL != "" {
		t.wellKnown = strings.TrimSuffix(c.Issuer.URL, "/") + "/.well-known/openid-configuration"
		t.discoveryURL, _ = url.Parse(c.Issuer.DiscoveryURL) // it is valid
	}
	return &http.Client{Transport: t, Timeout: patience}
}

// transport bounds what an issuer is asked and what it answers.
type transport struct {
	http.RoundTripper
	issuer  string
	metrics *Metrics
	// wellKnown is the address for which discoveryURL is asked; empty if there is none.
	wellKnown    string
	discoveryURL *url.URL
	// keysURL is where the keys are, once the issuer is discovered.
	keysURL atomic.Pointer[string]

	mu   sync.Mutex
	next time.Time // when the keys may be requested
}

// RoundTrip implements http.RoundTripper. Only https is spoken, also after a redirect.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an https URL", r.URL.Redacted())
	}
	address := r.URL.String()
	if t.discoveryURL != nil && r.Method == http.MethodGet && address == t.wellKnown {
		r = r.Clone(r.Context())
		r.Host, r.URL = "", t.discoveryURL
	}
	keysURL := t.keysURL.Load()
	if keysURL == nil || address != *keysURL {
		return t.bounded(r)
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
	response, err := t.bounded(r)
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

// bounded makes a request whose response is an error once it is too large.
func (t *transport) bounded(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{response.Body, maxDocument}
	return response, nil
}

// boundedBody is a body of which only so many bytes can be read.
type boundedBody struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, fmt.Errorf("the issuer's response is larger than %d bytes", maxDocument)
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the issuer's response is larger than %d bytes", maxDocument)
	}
	return n, err
}
