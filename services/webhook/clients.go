package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	// idleFor is how long an idle connection is kept.
	idleFor = 90 * time.Second
	// maxHeader bounds the headers of a response.
	maxHeader = 64 << 10
)

// Clients makes the clients of webhooks. Clients with the same target and trust share
// connections, for as long as one of them is in use.
type Clients struct {
	settings Settings

	mu         sync.Mutex
	transports map[target]weak.Pointer[http.Transport]
	calls      map[string]weak.Pointer[calls] // by URL
}

// Settings are what the clients of a process have in common.
type Settings struct {
	Caller Caller
	// Find resolves Services; it may be nil if no configuration names one.
	Find Resolver
	// Deny are networks that no webhook may be in. With it, the proxy of the environment is
	// not used, because it would resolve names itself.
	Deny endpoint.Networks
	// Refused reports whether an address and port is that of the suite itself; nil for none.
	Refused func(netip.AddrPort) bool
	// Ledger counts the responses of webhooks; nil counts nothing.
	Ledger *ledger.Ledger
}

// target is what clients that share connections have in common.
type target struct {
	service  bool
	address  string // host and port, or namespace, name and port of a service
	ca       [sha256.Size]byte
	identity *tls.Config
}

// NewClients returns clients without connections.
func NewClients(s Settings) *Clients {
	return &Clients{settings: s, transports: map[target]weak.Pointer[http.Transport]{}, calls: map[string]weak.Pointer[calls]{}}
}

// New returns a client. Errors of the configuration are returned by the first Post.
func (c *Clients) New(config Config) *Client {
	client := &Client{caller: c.settings.Caller, client: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	to := target{ca: sha256.Sum256(config.CABundle), identity: config.Identity.TLS}
	switch s := config.Service; {
	case config.Identity.Err != nil:
		client.err = config.Identity.Err
	case config.URL != nil:
		at, err := url.Parse(*config.URL)
		if client.err = err; err == nil {
			to.address, client.url = at.Host, cleaned(at)
		}
	case s != nil:
		r := s.reference()
		client.url, to.service, to.address = s.url(), true, r.Namespace+"/"+net.JoinHostPort(r.Name, r.Port.String())
	default:
		client.err = errors.New("clientConfig has neither url nor service")
	}
	if client.err != nil {
		return client
	}
	transport, err := c.transport(to, config)
	if client.err = err; err != nil {
		return client
	}
	client.owner, client.ledger = ledger.Owner{Kind: ledger.Webhook, Name: client.url}, c.settings.Ledger
	client.calls = c.callsOf(client.url)
	client.client.Transport = transport
	if config.Service != nil {
		client.client.Transport = &located{transport, c.settings.Find, config.Service.reference()}
	}
	if config.Identity.Wrap != nil {
		client.client.Transport = config.Identity.Wrap(client.client.Transport)
	}
	return client
}

// cleaned returns a URL without empty segments in its path, as Kubernetes calls it: many servers
// answer others with a redirect, which is not followed.
func cleaned(u *url.URL) string {
	clean := *u
	clean.Path, clean.RawPath = path.Join("/", u.Path), ""
	return clean.String()
}

// transport returns the connections to a target.
func (c *Clients) transport(to target, config Config) (*http.Transport, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if shared := c.transports[to].Value(); shared != nil {
		return shared, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if config.Identity.TLS != nil {
		trust = config.Identity.TLS.Clone()
		trust.MinVersion = max(trust.MinVersion, tls.VersionTLS12)
	}
	if len(config.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(config.CABundle) {
			return nil, errors.New("clientConfig.caBundle contains no certificate")
		}
	}
	if config.Service != nil && trust.ServerName == "" {
		trust.ServerName = config.Service.reference().ServerName()
	}
	made := endpoint.Bound(&http.Transport{
		TLSClientConfig: trust, MaxResponseHeaderBytes: maxHeader,
		DialContext: c.dialer(), IdleConnTimeout: idleFor, MaxIdleConnsPerHost: 16,
	})
	if config.Service == nil && len(c.settings.Deny) == 0 {
		made.Proxy = http.ProxyFromEnvironment
	}
	pointer := weak.Make(made)
	c.transports[to] = pointer
	runtime.AddCleanup(made, func(to target) { c.forget(to, pointer) }, to)
	return made, nil
}

// forget removes the transport of a target after it was collected, unless there is a newer one.
func (c *Clients) forget(to target, old weak.Pointer[http.Transport]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transports[to] == old {
		delete(c.transports, to)
	}
}

// dialer returns how to connect. Addresses are checked as they are dialled, after names have
// been resolved.
func (c *Clients) dialer() func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: endpoint.DialTimeout}
	if len(c.settings.Deny) > 0 || c.settings.Refused != nil {
		dialer.ControlContext = c.check
	}
	return dialer.DialContext
}

// check refuses what Check does when it is dialled.
func (c *Clients) check(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return c.Check(at)
}

// Check returns an error for an address in a denied network, and for one of the suite.
func (c *Clients) Check(at netip.AddrPort) error {
	if c.settings.Refused != nil && c.settings.Refused(at) {
		return fmt.Errorf("address not allowed: %s is a port of the suite", at)
	}
	if network, denied := c.settings.Deny.Containing(at.Addr()); denied {
		return fmt.Errorf("address not allowed: %s is in %s", endpoint.Plain(at.Addr()), network)
	}
	return nil
}
