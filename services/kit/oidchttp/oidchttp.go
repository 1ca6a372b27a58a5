// Package oidchttp connects to issuers of ID tokens, and bounds what they answer: they are trusted
// with identities, not with the memory of the process or with requests to others. It knows no
// documents and no tokens.
package oidchttp

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/portico-platform/portico/services/endpoint"
)

const (
	// Patience bounds one request to an issuer.
	Patience = 10 * time.Second
	// maxDocument is the size of the largest document of an issuer, in bytes, after it was
	// decompressed.
	maxDocument = 1 << 20
	// maxHeader bounds the headers of a response.
	maxHeader = 64 << 10
)

// Transport returns the connections to issuers whose certificates are of the roots, nil for those
// of the host. Only https is spoken, also after a redirect.
func Transport(roots *x509.CertPool) http.RoundTripper {
	return bounded{endpoint.Bound(&http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxHeader,
	})}
}

type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" {
		return nil, fmt.Errorf("%q is not an https URL", r.URL.Redacted())
	}
	response, err := b.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	response.Body = &body{response.Body, maxDocument}
	return response, nil
}

// body is a body of which only so many bytes can be read.
type body struct {
	io.ReadCloser
	left int
}

// Read implements io.Reader.
func (b *body) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, errLarge
	}
	n, err := b.ReadCloser.Read(into[:min(len(into), b.left+1)])
	if b.left -= n; b.left < 0 {
		return 0, errLarge
	}
	return n, err
}

var errLarge = fmt.Errorf("the issuer's response is larger than %d bytes", maxDocument)
