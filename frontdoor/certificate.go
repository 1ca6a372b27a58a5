package frontdoor

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/services/kit/run/reload"
)

// certificateCheck is the minimum interval between checks of the certificate files.
// Unauthenticated clients can start any number of handshakes, each of which may check.
const certificateCheck = time.Second

// openCertificate reads the serving certificate, which is reloaded when its files change.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*reload.Files[*tls.Certificate], error) {
	return reload.Open(reload.Config[*tls.Certificate]{
		What: "serving certificate", Paths: []string{certFile, keyFile}, Every: certificateCheck, Log: log,
		Parse: func(content [][]byte) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(content[0], content[1])
			return &pair, err
		},
	})
}
