package listener

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/reload"
)

// checkAuthorities is the minimum interval between checks of the files of authorities.
// Unauthenticated clients can start any number of handshakes, each of which may check.
const checkAuthorities = time.Second

// maxNamed bounds the names of authorities in a handshake, whose message has room for 64 KiB.
const maxNamed = 32 << 10

// naming returns a function that returns the configuration with the names of the authorities
// of client certificates, by which clients with several certificates choose one. Without
// files it returns nil: any certificate will do. It is a usage error if a file has no
// certificate.
func (s *Settings) naming(config *tls.Config, log *slog.Logger) (func() *tls.Config, error) {
	if len(s.Authorities) == 0 {
		return func() *tls.Config { return nil }, nil
	}
	files, err := reload.Open(reload.Config[*tls.Config]{
		What: "authorities of client certificates", Paths: s.Authorities, Every: checkAuthorities, Log: log,
		Parse: func(content [][]byte) (*tls.Config, error) { return withNames(config, content) },
	})
	if err != nil {
		return nil, run.Usagef("--client-ca-file, --requestheader-client-ca-file: %v", err)
	}
	return files.Get, nil
}

// withNames returns the configuration with the names of the authorities in the bundles (PEM),
// and without names if they are too long. It is an error if a bundle has no certificate.
func withNames(config *tls.Config, bundles [][]byte) (*tls.Config, error) {
	pool, size := x509.NewCertPool(), 0
	for _, rest := range bundles {
		found := false
		for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
			if block.Type != "CERTIFICATE" {
				continue
			}
			authority, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, err
			}
			pool.AddCert(authority)
			size += len(authority.RawSubject)
			found = true
		}
		if !found {
			return nil, errors.New("a file has no certificate")
		}
	}
	named := config.Clone()
	if size <= maxNamed {
		named.ClientCAs = pool
	}
	return named, nil
}
