package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
)

// extensionPool is how many idle connections to one address of an extension are kept.
const extensionPool = 32

// Trust is how an extension proves who it is, and how the front door proves it to the
// extension.
type Trust struct {
	// ServerName is the name in the certificate of the extension.
	ServerName string
	// Authorities have signed that certificate (PEM); those of the system when empty.
	Authorities []byte
	// Insecure turns the verification of the certificate off.
	Insecure bool
	// Identity is the client certificate; nil for none.
	Identity *tls.Certificate
}

// Extension returns a transport to the servers of an extension. The caller closes its idle
// connections when it is no longer used.
func (t *Transports) Extension(trust Trust) (*http.Transport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: trust.ServerName, InsecureSkipVerify: trust.Insecure} //nolint:gosec // as the object asks
	if trust.Identity != nil {
		// An extension that has just started names only some of its authorities, and may look at the
		// certificate again later, on the same connection.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return trust.Identity, nil }
	}
	if len(trust.Authorities) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(trust.Authorities) {
			return nil, errors.New("spec.caBundle has no certificate")
		}
	}
	over := t.transport(config, t.config.Policy.checkExtension)
	over.MaxIdleConnsPerHost = extensionPool
	return over, nil
}
