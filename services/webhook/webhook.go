// Package webhook calls webhooks over HTTPS, at a URL or a Service, verified by the CA
// bundle of their configuration. The content of requests is up to the caller: admission
// reviews of admission, conversion reviews of the front door. It serves "Admission
// plugins" and "Removals" of the specification.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	// dialWithin bounds the time to connect.
	dialWithin = 10 * time.Second
	// idleFor is how long an idle connection is kept.
	idleFor = 90 * time.Second
	// servicePort is the default port of a service.
	servicePort = 443
)

// Config is a client configuration, as in webhook configurations and custom resource
// definitions: a URL or a Service.
type Config struct {
	URL      *string  `json:"url"`
	Service  *Service `json:"service"`
	CABundle []byte   `json:"caBundle"`
	// Identity is the operator's: objects of the API cannot set it.
	Identity Identity `json:"-"`
}

// Identity is how a client proves who it is. Its zero value is a client without a name.
type Identity struct {
	// TLS holds the certificate of the client, and whom it trusts unless the
	// configuration has a CABundle.
	TLS *tls.Config
	// Wrap adds credentials to requests.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Err is why there is no identity; requests are then not sent.
	Err error
}

// Service is a service of the cluster.
type Service struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Path      *string `json:"path"`
	Port      *int32  `json:"port"`
}

// Resolver returns the host and port of a service of the cluster.
type Resolver func(ctx context.Context, namespace, name string, port int32) (address string, err error)

// Client calls one webhook. It keeps connections while the webhook's configuration is
// unchanged.
type Client struct {
	url    string
	client *http.Client
	caller Caller
	err    error // invalid configuration
}

// Caller is who calls a webhook.
type Caller struct {
	// Agent is the User-Agent of its requests.
	Agent string
	// Trace adds the headers that name the trace of ctx; nil adds none.
	Trace func(ctx context.Context, h http.Header)
}

// New returns a client. Errors of the configuration are returned by the first Post.
func New(c Config, find Resolver, caller Caller) *Client {
	if c.Identity.Err != nil {
		return &Client{err: c.Identity.Err}
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.Identity.TLS != nil {
		trust = c.Identity.TLS.Clone()
		trust.MinVersion = max(trust.MinVersion, tls.VersionTLS12)
	}
	if len(c.CABundle) > 0 {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(c.CABundle) {
			return &Client{err: errors.New("clientConfig.caBundle contains no certificate")}
		}
	}
	dialer := &net.Dialer{Timeout: dialWithin}
	transport := &http.Transport{
		TLSClientConfig: trust, TLSHandshakeTimeout: dialWithin, ForceAttemptHTTP2: true,
		DialContext: dialer.DialContext, Proxy: http.ProxyFromEnvironment, IdleConnTimeout: idleFor, MaxIdleConnsPerHost: 16,
	}
	client := &Client{caller: caller, client: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if c.Identity.Wrap != nil {
		client.client.Transport = c.Identity.Wrap(transport)
	}
	switch s := c.Service; {
	case c.URL != nil:
		client.url = *c.URL
	case s != nil:
		client.url = s.url()
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			address, err := find(ctx, s.Namespace, s.Name, s.port())
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, address)
		}
	default:
		client.err = errors.New("clientConfig has neither url nor service")
	}
	return client
}

func (s *Service) port() int32 {
	if s.Port != nil {
		return *s.Port
	}
	return servicePort
}

// url uses the name in the service's certificate, whatever host it resolves to.
func (s *Service) url() string {
	url := fmt.Sprintf("https://%s.%s.svc:%d", s.Name, s.Namespace, s.port())
	if s.Path != nil {
		url += "/" + strings.TrimPrefix(*s.Path, "/")
	}
	return url
}

// Post sends a request as JSON and decodes the response into reply. The timeout is also
// sent as a query parameter.
func (c *Client) Post(ctx context.Context, question, reply any, l Limits) error {
	if c.err != nil {
		return c.err
	}
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	query := request.URL.Query()
	query.Set("timeout", l.Timeout.String())
	request.URL.RawQuery = query.Encode()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", c.caller.Agent)
	if c.caller.Trace != nil {
		c.caller.Trace(ctx, request.Header)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, l.Bytes))
	if err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return &StatusError{Code: response.StatusCode, Status: response.Status, Retry: response.Header.Get("Retry-After") != ""}
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("its answer is not a %T: %w", reply, err)
	}
	return nil
}

// CloseIdle closes the connections that no request uses.
func (c *Client) CloseIdle() {
	if c.client != nil {
		c.client.CloseIdleConnections()
	}
}

// StatusError is an answer with a status that is not a success.
type StatusError struct {
	Code   int
	Status string // the code and its reason
	Retry  bool   // the answer says when to try again
}

// Error implements error.
func (e *StatusError) Error() string { return "it answered " + e.Status }

// Limits bound one call.
type Limits struct {
	Timeout time.Duration
	Bytes   int64 // of the response
}
