// Package keypair reads a certificate with its private key, and reads them again when their
// files change: the serving certificate of the front door, and the client certificates for
// extensions, admission services and webhooks.
package keypair

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/services/reload"
)

// check is the minimum interval between checks of the files. Unauthenticated clients can
// start any number of handshakes, each of which may check.
const check = time.Second

// Files are a certificate and its key (PEM).
type Files struct {
	// What describes them, for the log.
	What      string
	Cert, Key string
}

// Open reads the files for the first time.
func Open(f Files, log *slog.Logger) (*reload.Files[*tls.Certificate], error) {
	return reload.Open(reload.Config[*tls.Certificate]{
		What: f.What, Paths: []string{f.Cert, f.Key}, Every: check, Log: log,
		Parse: func(content [][]byte) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(content[0], content[1])
			return &pair, err
		},
	})
}
