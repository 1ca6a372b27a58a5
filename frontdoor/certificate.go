package frontdoor

import (
	"crypto/tls"
	"os"
	"sync"
	"time"
)

// certificate is the service's certificate, read again when its file changes.
type certificate struct {
	certFile, keyFile string

	mu      sync.Mutex
	current *tls.Certificate
	read    time.Time // modification time of the file that current came from
	checked time.Time
}

// certificateCheck is how often the file is looked at.
const certificateCheck = 10 * time.Second

func newCertificate(certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	return c, c.load()
}

func (c *certificate) load() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.current, c.read, c.checked = &pair, info.ModTime(), time.Now()
	return nil
}

// get is for tls.Config. A file that cannot be read now leaves the certificate as
// it is.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) > certificateCheck {
		c.checked = time.Now()
		if info, err := os.Stat(c.certFile); err == nil && !info.ModTime().Equal(c.read) {
			_ = c.load()
		}
	}
	return c.current, nil
}
