// Package listener opens the port of the front door with TLS, as the flags say: serving
// certificates, versions and cipher suites. Client certificates are requested here and
// verified by authn.
package listener

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/accept"
	"github.com/portico-platform/portico/services/kit/run/expiry"
)

// Settings are the flags of the port. Register them before Open.
type Settings struct {
	// BindAddress is the IP address that the port is opened on.
	BindAddress string
	// Authorities are the files (PEM) of the authorities whose names a handshake
	// gives to clients; none means any.
	Authorities []string
	// Serving is the health check of the port.
	Serving           Serving
	port              int
	certFile, keyFile string
	named             []string
	minVersion        string
	cipherSuites      []string
	certificates      func() []*x509.Certificate // of the open port, beside those for hosts of flags
	hosts             []string                   // of flags
}

// Register declares the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.StringVar(&s.BindAddress, "bind-address", "127.0.0.1", "address to serve HTTPS on; 0.0.0.0 for all interfaces")
	fs.IntVar(&s.port, "secure-port", 6443, "port to serve HTTPS on; 0 for any free port")
	fs.StringVar(&s.certFile, "tls-cert-file", "", "serving certificate (PEM, may include intermediates)")
	fs.StringVar(&s.keyFile, "tls-private-key-file", "", "private key for --tls-cert-file (PEM)")
	expiry.Flags(fs, expiry.Own, "tls-cert-file")
	fs.StringArrayVar(&s.named, "tls-sni-cert-key", nil, "cert,key or cert,key:host1,*.host2: serving certificate and private key (PEM) for clients that name one of the hosts; without hosts, for those that the certificate names; may be given more than once")
	fs.StringVar(&s.minVersion, "tls-min-version", "VersionTLS12", "minimum version of TLS: "+strings.Join(versionNames(), ", "))
	fs.StringSliceVar(&s.cipherSuites, "tls-cipher-suites", nil, "cipher suites up to TLS 1.2, by their Go names; if empty, those of Go")
}

// Protocols are those that only certain clients support, each with the configuration of its
// handshakes.
type Protocols map[string]func() *tls.Config

// Open opens the port. Invalid flags are usage errors. Certificates are reloaded when their
// files change, and watch is called for each file that only --tls-sni-cert-key names.
func (s *Settings) Open(log *slog.Logger, watch func(expiry.Source), others Protocols) (net.Listener, error) {
	config, err := s.config(log, watch)
	if err != nil {
		return nil, err
	}
	named, err := s.naming(config, log)
	if err != nil {
		return nil, err
	}
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, protocol := range hello.SupportedProtos {
			if other := others[protocol]; other != nil {
				return other(), nil
			}
		}
		return named(), nil
	}
	plain, err := accept.Listen(net.JoinHostPort(s.BindAddress, strconv.Itoa(s.port)), accept.Clients(), log)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(plain, config), nil
}

func (s *Settings) config(log *slog.Logger, watch func(expiry.Source)) (*tls.Config, error) {
	if s.certFile == "" || s.keyFile == "" {
		return nil, run.Usagef("--tls-cert-file and --tls-private-key-file are required")
	}
	serving, err := keypair.Open(keypair.Files{What: "serving certificate", Cert: s.certFile, Key: s.keyFile}, log)
	if err != nil {
		return nil, run.Usagef("--tls-cert-file, --tls-private-key-file: %v", err)
	}
	version, ok := versions[s.minVersion]
	if !ok {
		return nil, run.Usagef("--tls-min-version: %q is not one of %s", s.minVersion, strings.Join(versionNames(), ", "))
	}
	suites, err := suitesOf(s.cipherSuites, version)
	if err != nil {
		return nil, err
	}
	var certificates []named
	for _, text := range s.named {
		c, err := parseNamed(text, log)
		if err != nil {
			return nil, run.Usagef("--tls-sni-cert-key: %v", err)
		}
		watch(expiry.Source{Kind: expiry.Own, Name: c.file})
		certificates = append(certificates, c)
	}
	s.certificates = func() []*x509.Certificate { return leaves(serving.Get(), certificates) }
	for _, c := range certificates {
		s.hosts = append(s.hosts, c.hosts...)
	}
	return &tls.Config{
		MinVersion: version, CipherSuites: suites, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := choose(certificates, hello); c != nil {
				return c, nil
			}
			return serving.Get(), nil
		},
	}, nil
}

// versions are the values of --tls-min-version.
var versions = map[string]uint16{
	"VersionTLS10": tls.VersionTLS10, "VersionTLS11": tls.VersionTLS11, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13}

func versionNames() []string {
	return []string{"VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"}
}

// forHTTP2 are the cipher suites of which HTTP/2 with TLS 1.2 requires one (RFC 9113 section
// 9.2.2).
var forHTTP2 = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}

// suitesOf returns the cipher suites with the names; nil, which is the choice of Go, for no
// names.
func suitesOf(names []string, minVersion uint16) ([]uint16, error) {
	var suites []uint16
	for _, name := range names {
		id, ok := suite(name)
		if !ok {
			return nil, run.Usagef("--tls-cipher-suites: %q is not supported", name)
		}
		suites = append(suites, id)
	}
	if suites == nil || minVersion == tls.VersionTLS13 {
		return suites, nil
	}
	if !slices.ContainsFunc(forHTTP2, func(id uint16) bool { return slices.Contains(suites, id) }) {
		return nil, run.Usagef("--tls-cipher-suites: HTTP/2 requires %s or %s", tls.CipherSuiteName(forHTTP2[0]), tls.CipherSuiteName(forHTTP2[1]))
	}
	return suites, nil
}

// shortNames are names of cipher suites without their hash, which Kubernetes accepts too.
var shortNames = map[string]uint16{
	"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}

func suite(name string) (uint16, bool) {
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if s.Name == name {
			return s.ID, true
		}
	}
	id, ok := shortNames[name]
	return id, ok
}
