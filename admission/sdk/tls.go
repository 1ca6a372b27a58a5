package sdk

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/portico-platform/portico/admission/sdk/localcert"
	"github.com/portico-platform/portico/services/reload"
)

// identity is the certificate of the servers and the authorities of their callers.
type identity struct {
	files   *reload.Files[material]
	allowed []string
}

// material is the parsed content of the files.
type material struct {
	pair    tls.Certificate
	callers *x509.CertPool // nil if callers need no certificate
}

// loadIdentity reads the certificate, and the authorities of callers if ca is not empty.
func loadIdentity(o Options, ca string, log *slog.Logger) (*identity, error) {
	paths := []string{o.CertFile, o.KeyFile}
	if ca != "" {
		paths = append(paths, ca)
	}
	files, err := reload.Open(reload.Config[material]{What: "certificate", Paths: paths, Parse: parseMaterial, Log: log})
	if err != nil {
		return nil, fmt.Errorf("%w: certificate: %w", ErrUsage, err)
	}
	return &identity{files, o.AllowedCallers}, nil
}

func parseMaterial(content [][]byte) (m material, err error) {
	if m.pair, err = tls.X509KeyPair(content[0], content[1]); err != nil {
		return m, err
	}
	if len(content) > 2 {
		m.callers = x509.NewCertPool()
		if !m.callers.AppendCertsFromPEM(content[2]) {
			return m, errors.New("the CA file has no certificate")
		}
	}
	return m, nil
}

// config returns the TLS configuration of a server. Every handshake reads the files again.
func (i *identity) config(least uint16, protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: least, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := i.files.Get()
			c := &tls.Config{
				MinVersion: least, Certificates: []tls.Certificate{m.pair}, NextProtos: protocols,
				// Every handshake verifies the current certificates.
				SessionTicketsDisabled: true,
			}
			if m.callers != nil {
				c.ClientAuth, c.ClientCAs, c.VerifyConnection = tls.RequireAndVerifyClientCert, m.callers, i.verify
			}
			return c, nil
		},
	}
}

// verify rejects callers whose certificate has none of the allowed names.
func (i *identity) verify(state tls.ConnectionState) error {
	if len(i.allowed) == 0 {
		return nil
	}
	caller := state.PeerCertificates[0]
	for _, name := range append(slices.Clone(caller.DNSNames), caller.Subject.CommonName) {
		if slices.Contains(i.allowed, name) {
			return nil
		}
	}
	return fmt.Errorf("a caller with the names %q is not allowed", caller.DNSNames)
}

// ensureCertificate creates a certificate for localhost if the options name none.
func (o *Options) ensureCertificate(name string, log *slog.Logger) error {
	if o.CertFile != "" {
		return nil
	}
	files, err := localcert.Ensure(o.CertDir, name, "localhost", "127.0.0.1", "::1")
	if err != nil {
		return fmt.Errorf("--cert-dir: %w", err)
	}
	o.CertFile, o.KeyFile = files.Cert, files.Key
	log.Info("the certificate is for localhost; configure callers with its CA", "ca", files.CA)
	return nil
}
