// Package oidchttp connects to issuers of ID tokens, and bounds what they answer: they are trusted
// with identities, not with the memory of the process or with requests to others. It knows no
// documents and no tokens.
package oidchttp

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/ledger"
)

const (
	// Patience bounds one request to an issuer.
	Patience = 10 * time.Second
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
	defer response.Body.Close()
	var hold ledger.Hold // of no ledger: few requests are made at a time
	document, err := ledger.Account{}.Read(&hold, response.Body, ledger.IssuerAnswer)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(document))
	return response, nil
}
