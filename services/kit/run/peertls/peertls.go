// Package peertls is the mutual TLS between processes of the suite. The DNS names of a
// process's certificate are the names of its services. Both ends verify these names, and
// never host names or addresses, so the CA must sign only for the suite.
//
// It authenticates peers; package run authorizes their calls by services.Callers. It
// serves "What the service does" of the specification.
package peertls

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/portico-platform/portico/services/reload"
)

// Files holds the paths of the PEM files of one process.
type Files struct {
	CA   string // certificates of the authorities that sign peers
	Cert string // this process's certificate, and intermediates after it
	Key  string
}

// Identity is the certificate, key and CA of a process. It reads its files again at every
// handshake, so that certificates are renewed by replacing the files.
type Identity struct{ files *reload.Files[material] }

// material is the parsed content of the files.
type material struct {
	roots *x509.CertPool
	pair  tls.Certificate
}

// Load reads the files.
func Load(files Files, log *slog.Logger) (*Identity, error) {
	read, err := reload.Open(reload.Config[material]{
		What: "peer certificate", Paths: []string{files.CA, files.Cert, files.Key}, Parse: parse, Log: log,
	})
	return &Identity{read}, err
}

func parse(content [][]byte) (m material, err error) {
	if m.pair, err = tls.X509KeyPair(content[1], content[2]); err != nil {
		return m, fmt.Errorf("certificate and key: %w", err)
	}
	m.roots = x509.NewCertPool()
	if !m.roots.AppendCertsFromPEM(content[0]) {
		return m, errors.New("the CA file holds no certificate")
	}
	return m, nil
}

// Services returns the DNS names of the process's own certificate.
func (i *Identity) Services() []string { return i.files.Get().pair.Leaf.DNSNames }

// Certificate returns the process's own certificate, for a tls.Config.
func (i *Identity) Certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair := i.files.Get().pair
	return &pair, nil
}

// Server returns the credentials of a server. It rejects clients without a certificate of
// the CA.
func (i *Identity) Server() credentials.TransportCredentials {
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return i.ServerConfig("h2"), nil },
	})
}

// ServerConfig returns the configuration of one handshake with a client of the CA, which must
// speak the protocol.
func (i *Identity) ServerConfig(protocol string) *tls.Config {
	m := i.files.Get()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: m.roots,
		NextProtos:             []string{protocol},
		SessionTicketsDisabled: true, // so that every handshake verifies the current certificate
	}
}

// ClientConfig returns the configuration of one handshake with a service.
func (i *Identity) ClientConfig(service string, protocols ...string) *tls.Config {
	m := i.files.Get()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: service, NextProtos: protocols,
		RootCAs: m.roots, Certificates: []tls.Certificate{m.pair},
	}
}

// Client returns the credentials for calling a service, at any address.
func (i *Identity) Client(service string) credentials.TransportCredentials {
	return &client{TransportCredentials: i.dialing(service), identity: i, service: service}
}

// Services returns the service names of a verified peer.
func Services(state tls.ConnectionState) []string {
	if len(state.VerifiedChains) == 0 {
		return nil
	}
	return state.VerifiedChains[0][0].DNSNames
}

// client creates a TLS configuration for every handshake: unlike a server's, a client's
// tls.Config cannot replace its CAs.
type client struct {
	credentials.TransportCredentials
	identity *Identity
	service  string
}

func (c *client) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return c.identity.dialing(c.service).ClientHandshake(ctx, c.service, conn)
}

func (c *client) Clone() credentials.TransportCredentials { return c.identity.Client(c.service) }

func (i *Identity) dialing(service string) credentials.TransportCredentials {
	return credentials.NewTLS(i.ClientConfig(service))
}

var _ credentials.TransportCredentials = (*client)(nil)
