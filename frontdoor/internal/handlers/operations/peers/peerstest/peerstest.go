// Package peerstest opens ports of front doors for tests of what front doors say to each other. It
// decides which certificates they have; what they answer is that of the test.
package peerstest

import (
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/operations/peers"
	"github.com/portico-platform/portico/frontdoor/internal/http/listener"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// Suite has the authorities of front doors and of the certificates that clients see.
type Suite struct {
	*testing.T
	Authority, Public *peertls.Authority
}

// New returns a suite with new authorities.
func New(t *testing.T) Suite {
	t.Helper()
	s := Suite{T: t}
	for _, authority := range []**peertls.Authority{&s.Authority, &s.Public} {
		var err error
		if *authority, err = peertls.NewAuthority(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Identity returns an identity of a service, with a certificate of an authority.
func (s Suite) Identity(of *peertls.Authority, name string) *peertls.Identity {
	s.Helper()
	files, err := of.Issue(s.TempDir(), name)
	if err != nil {
		s.Fatal(err)
	}
	identity, err := peertls.Load(files, slog.New(slog.DiscardHandler))
	if err != nil {
		s.Fatal(err)
	}
	return identity
}

// Serve serves clients and other front doors at a port until the test ends.
func (s Suite) Serve(p *peers.Peers, clients, frontDoors http.Handler) net.Addr {
	s.Helper()
	var settings listener.Settings
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	settings.Register(fs)
	files, err := s.Public.Issue(s.TempDir(), "public")
	if err != nil {
		s.Fatal(err)
	}
	if err := fs.Parse([]string{"--secure-port=0", "--tls-cert-file=" + files.Cert, "--tls-private-key-file=" + files.Key}); err != nil {
		s.Fatal(err)
	}
	port, err := settings.Open(slog.New(slog.DiscardHandler), func(expiry.Source) {}, p.Protocols())
	if err != nil {
		s.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: clients, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	closePeers := p.Serve(server, frontDoors)
	go func() { _ = server.Serve(port) }()
	s.Cleanup(closePeers)
	s.Cleanup(func() { _ = server.Close() })
	return port.Addr()
}
