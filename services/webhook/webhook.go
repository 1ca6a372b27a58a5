// Package webhook calls webhooks over HTTPS, at a URL or a Service, verified by the CA
// bundle of their configuration. The content of requests is up to the caller: admission
// reviews of admission, conversion reviews of the front door. It serves "Admission
// plugins" and "Removals" of the specification.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/locate"
)

// servicePort is the default port of a service.
const servicePort = 443

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
	// Port is a number in objects of Kubernetes; the default is 443.
	Port *intstr.IntOrString `json:"port"`
}

// Resolver returns the host and port of a server of a Service.
type Resolver func(ctx context.Context, r locate.Reference) (address string, err error)

// Client calls one webhook.
type Client struct {
	url    string
	client *http.Client
	caller Caller
	err    error // invalid configuration
	// owner pays for responses, in ledger, and calls are those in progress.
	owner  ledger.Owner
	ledger *ledger.Ledger
	calls  *calls
}

// Caller is who calls webhooks.
type Caller struct {
	// Agent is the User-Agent of its requests.
	Agent string
	// Trace adds the headers that name the trace of ctx; nil adds none.
	Trace func(ctx context.Context, h http.Header)
}

// reference returns the reference to resolve in the cluster.
func (s *Service) reference() locate.Reference {
	r := locate.Reference{Namespace: s.Namespace, Name: s.Name, Port: intstr.FromInt32(servicePort)}
	if s.Port != nil {
		r.Port = *s.Port
	}
	return r
}

// url uses the name in the service's certificate, whatever host it resolves to.
func (s *Service) url() string {
	r := s.reference()
	url := "https://" + r.ServerName()
	if r.Port.Type == intstr.Int {
		url += ":" + r.Port.String()
	}
	if s.Path != nil {
		url += "/" + strings.TrimPrefix(*s.Path, "/")
	}
	return url
}

// Post sends a request as JSON and decodes the response into reply. With a nil reply the
// content of a successful response does not matter. The timeout is also
// sent as a query parameter. The error is a ledger.FullError if too many calls of the webhook are in progress, or
// their responses take its share of memory: no reason to do without the webhook.
func (c *Client) Post(ctx context.Context, question, reply any, l Limits) error {
	if c.err != nil {
		return c.err
	}
	leave, err := c.calls.enter(c.owner)
	if err != nil {
		return err
	}
	defer leave()
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
	if response.StatusCode/100 != 2 {
		return &StatusError{Code: response.StatusCode, Status: response.Status, Retry: response.Header.Get("Retry-After") != ""}
	}
	bound := l.Text
	if l.Converts {
		bound = ledger.Converted(int64(len(body)), ledger.Values(body))
	}
	if reply == nil {
		_, _ = io.CopyN(io.Discard, response.Body, bound.Bytes) // so that the connection can be used again
		return nil
	}
	var hold ledger.Hold
	defer hold.Release()
	text, err := ledger.Account{Ledger: c.ledger, Owner: c.owner}.Read(&hold, response.Body, bound)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, reply); err != nil {
		return fmt.Errorf("its response is not a %T: %w", reply, err)
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

// Error implements error. The message is that of client-go, without the body of the answer: a user who
// configures a webhook could otherwise read responses of other servers.
func (e *StatusError) Error() string {
	return apierrors.NewGenericServerResponse(e.Code, http.MethodPost, schema.GroupResource{}, "", e.Status, 0, false).Error()
}

// Limits bound one call.
type Limits struct {
	Timeout time.Duration
	// Text bounds the response. It is that of ledger.Converted for a call that Converts objects.
	Text     ledger.Text
	Converts bool
}
