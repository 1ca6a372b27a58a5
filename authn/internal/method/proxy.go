package method

import (
	"context"
	"crypto/x509"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
)

// ProxyConfig holds the trusted proxies and the headers in which they name users.
type ProxyConfig struct {
	ClientCAFile  string
	AllowedNames  []string // common names of proxies; empty: any
	UserHeaders   []string // the first with a value holds the user name
	GroupHeaders  []string
	ExtraPrefixes []string
}

// Proxy authenticates by the headers of a trusted proxy (section
// "Authenticating proxy flags and headers").
type Proxy struct {
	config ProxyConfig
	roots  *x509.CertPool
	now    func() time.Time
}

// NewProxy reads the CA bundle that verifies proxies.
func NewProxy(config ProxyConfig, now func() time.Time) (*Proxy, error) {
	roots, err := ReadRoots([]string{config.ClientCAFile})
	if err != nil {
		return nil, err
	}
	return &Proxy{config: config, roots: roots, now: now}, nil
}

// Name implements Method.
func (m *Proxy) Name() string { return services.ByProxy }

// Authenticate implements Method. Headers are read only after the proxy's certificate and
// name are verified. Any other certificate may be a user's, so it is ignored.
func (m *Proxy) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	if len(c.Certificates) == 0 {
		return services.Authentication{}, ErrNone
	}
	leaf, err := verifyClient(c.Certificates, m.roots, m.now())
	if err != nil {
		return services.Authentication{}, ErrNone
	}
	if len(m.config.AllowedNames) > 0 && !slices.Contains(m.config.AllowedNames, leaf.Subject.CommonName) {
		return services.Authentication{}, ErrNone
	}
	result := services.Authentication{Credential: traceOf(leaf)}
	for _, name := range m.config.UserHeaders {
		values := c.Headers[textproto.CanonicalMIMEHeaderKey(name)]
		if len(values) > 0 && values[0] != "" {
			result.User.Name = values[0]
			break
		}
	}
	if result.User.Name == "" {
		return services.Authentication{}, ErrNone
	}
	result.ProxyHeaders = append(result.ProxyHeaders, m.config.UserHeaders...)
	for _, name := range m.config.GroupHeaders {
		result.User.Groups = append(result.User.Groups, c.Headers[textproto.CanonicalMIMEHeaderKey(name)]...)
		result.ProxyHeaders = append(result.ProxyHeaders, name)
	}
	m.readExtra(c.Headers, &result)
	return result, nil
}

func (m *Proxy) readExtra(headers map[string][]string, into *services.Authentication) {
	for name, values := range headers {
		lower := strings.ToLower(name)
		for _, prefix := range m.config.ExtraPrefixes {
			key, ok := strings.CutPrefix(lower, strings.ToLower(prefix))
			if !ok {
				continue
			}
			if decoded, err := url.PathUnescape(key); err == nil {
				key = decoded
			}
			if into.User.Extra == nil {
				into.User.Extra = map[string][]string{}
			}
			into.User.Extra[key] = append(into.User.Extra[key], values...)
			into.ProxyHeaders = append(into.ProxyHeaders, name)
		}
	}
}

var _ Method = (*Proxy)(nil)
