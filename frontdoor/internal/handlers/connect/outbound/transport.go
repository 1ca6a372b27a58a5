package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/portico-platform/portico/services/reload"
)

const (
	// maxHeader bounds the header of a response.
	maxHeader = 64 << 10
	// filesCheck is how often the files of the certificates are read, at most.
	filesCheck = time.Second
	// idleInPool is how long a connection is kept for further requests.
	idleInPool = 90 * time.Second
	maxInPool  = 256
)

// Config configures the transports.
type Config struct {
	Policy Policy
	// Certificate and Key are the files of the client certificate for nodes, Authority
	// that of the authorities that have signed the certificates of nodes. Each may be
	// empty; without Authority, certificates of nodes are not verified.
	Certificate, Key, Authority string
	// Timeout bounds connecting, including TLS.
	Timeout time.Duration
	// Idle ends connections on which nothing was sent or received for that long.
	Idle time.Duration
	Log  *slog.Logger
}

// Transports are the ways to nodes, and to pods and endpoints. They are safe for
// concurrent use.
type Transports struct {
	config Config
	nodes  *reload.Files[*nodeTransports]
	// Plain is for pods and endpoints: without a client certificate, and without verification, because their
	// authorities are unknown.
	Plain *http.Transport
}

type nodeTransports struct{ verified, unverified *http.Transport }

// New reads the files for the first time.
func New(c Config) (*Transports, error) {
	if (c.Certificate == "") != (c.Key == "") {
		return nil, errors.New("a client certificate needs both a certificate file and a key file")
	}
	t := &Transports{config: c}
	t.Plain = t.transport(&tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, c.Policy.check) //nolint:gosec // see Plain
	var paths []string
	for _, path := range []string{c.Certificate, c.Key, c.Authority} {
		if path != "" {
			paths = append(paths, path)
		}
	}
	var err error
	t.nodes, err = reload.Open(reload.Config[*nodeTransports]{What: "certificates for nodes", Paths: paths, Every: filesCheck, Log: c.Log, Parse: t.parse})
	return t, err
}

// Node returns the transport to nodes. Only the logs of a container may be read without
// verification, if the client requests it.
func (t *Transports) Node(verified bool) *http.Transport {
	if verified {
		return t.nodes.Get().verified
	}
	return t.nodes.Get().unverified
}

// parse makes the transports of what the files hold. A new certificate gets new
// transports, so that no connection with the old one is used again.
func (t *Transports) parse(content [][]byte) (*nodeTransports, error) {
	verified := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.config.Certificate != "" {
		pair, err := tls.X509KeyPair(content[0], content[1])
		if err != nil {
			return nil, err
		}
		verified.Certificates, content = []tls.Certificate{pair}, content[2:]
	}
	unverified := verified.Clone()
	unverified.InsecureSkipVerify = true
	if t.config.Authority == "" {
		verified.InsecureSkipVerify = true
	} else {
		verified.RootCAs = x509.NewCertPool()
		if !verified.RootCAs.AppendCertsFromPEM(content[0]) {
			return nil, errors.New("the CA file has no certificate")
		}
	}
	return &nodeTransports{t.transport(verified, t.config.Policy.check), t.transport(unverified, t.config.Policy.check)}, nil
}

// transport uses HTTP/1.1 only: its connections can be upgraded.
func (t *Transports) transport(config *tls.Config, check func(netip.AddrPort) error) *http.Transport {
	dialer := &net.Dialer{Timeout: t.config.Timeout, KeepAlive: 30 * time.Second, ControlContext: control(check)}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &idleConn{Conn: conn, idle: t.config.Idle}, nil
		},
		TLSClientConfig: config, TLSHandshakeTimeout: t.config.Timeout, DisableCompression: true,
		MaxResponseHeaderBytes: maxHeader, IdleConnTimeout: idleInPool, MaxIdleConns: maxInPool, ExpectContinueTimeout: time.Second,
	}
}

// idleConn ends when neither direction has moved for a time.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(b []byte) (int, error) {
	c.extend()
	return c.Conn.Read(b)
}

func (c *idleConn) Write(b []byte) (int, error) {
	c.extend()
	return c.Conn.Write(b)
}

// extend moves the deadline of both directions, also of one that waits already.
func (c *idleConn) extend() {
	if c.idle > 0 {
		_ = c.Conn.SetDeadline(time.Now().Add(c.idle))
	}
}
