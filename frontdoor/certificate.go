package frontdoor

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/services/kit/run/reload"
)

// certificateCheck is how often the files of the certificate are looked at, at most:
// handshakes are what clients without any credentials can ask for.
const certificateCheck = time.Second

// openCertificate reads the service's certificate, which follows its files.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*reload.Files[*tls.Certificate], error) {
	return reload.Open(reload.Config[*tls.Certificate]{
		What: "serving certificate", Paths: []string{certFile, keyFile}, Every: certificateCheck, Log: log,
		Parse: func(content [][]byte) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(content[0], content[1])
			return &pair, err
		},
	})
}
