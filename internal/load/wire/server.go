package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"

	"golang.org/x/net/http2/hpack"
	"k8s.io/client-go/rest"
)

// ErrLeaving is the error of a request on a connection on which the server takes no more.
var ErrLeaving = errors.New("the server ends the connection")

// Header returns the fields that all requests have, with names in lower case.
type Header func() ([]hpack.HeaderField, error)

// Server is what Dial connects to.
type Server struct {
	// URL is the base URL. Its path precedes those of the requests.
	URL    string
	TLS    *tls.Config
	Header Header
}

// Unverified returns a server whose certificate is not verified, for requests with a bearer token.
func Unverified(base, token, agent string) Server {
	fields := []hpack.HeaderField{{Name: "authorization", Value: "Bearer " + token}, {Name: "user-agent", Value: agent}}
	return Server{URL: base, TLS: &tls.Config{InsecureSkipVerify: true}, Header: func() ([]hpack.HeaderField, error) { return fields, nil }}
}

// FromConfig returns the server of a client's configuration, with its certificates and credentials,
// which are renewed as by other clients. It is an error if the configuration needs a proxy.
func FromConfig(config *rest.Config) (Server, error) {
	if config.Proxy != nil {
		return Server{}, errors.New("a proxy-url in the kubeconfig is not supported")
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Server{}, err
	}
	verify, err := rest.TLSConfigFor(config)
	if err != nil {
		return Server{}, err
	}
	if verify == nil {
		verify = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	credentials, err := rest.HTTPWrappersForConfig(config, captured{})
	if err != nil {
		return Server{}, err
	}
	return Server{URL: base.String(), TLS: verify, Header: func() ([]hpack.HeaderField, error) { return fieldsOf(credentials, base.String()) }}, nil
}

// captureKey is the key of the header that captured stores into.
type captureKey struct{}

// captured stores the header of a request instead of sending it.
type captured struct{}

func (captured) RoundTrip(r *http.Request) (*http.Response, error) {
	*r.Context().Value(captureKey{}).(*http.Header) = r.Header
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// fieldsOf returns the header that a client's transport adds to requests.
func fieldsOf(credentials http.RoundTripper, base string) (fields []hpack.HeaderField, err error) {
	var header http.Header
	r, err := http.NewRequestWithContext(context.WithValue(context.Background(), captureKey{}, &header), http.MethodGet, base, nil)
	if err != nil {
		return nil, err
	}
	response, err := credentials.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	for name, values := range header {
		for _, value := range values {
			fields = append(fields, hpack.HeaderField{Name: strings.ToLower(name), Value: value})
		}
	}
	return fields, nil
}
