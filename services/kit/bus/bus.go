// Package bus connects a service to NATS: the embedded server of the process, or the one
// of --nats-url. NATS transports changes and stores nothing. Receivers detect lost
// messages and request a replay (package changes), so this package does not retry
// messages. In one process, followers can be woken without a message. It serves "Watch procedure".
package bus

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/reload"
)

const (
	reconnectWait = 250 * time.Millisecond
	pingEvery     = 10 * time.Second
	pingsOut      = 2
	// reconnectBuffer is the size of the buffer for messages while disconnected, in bytes.
	// Messages beyond it are lost, and replayed by the hub.
	reconnectBuffer = 4 << 20
	flushTimeout    = time.Second
	// writeTimeout bounds how long a server may not read: the client holds its lock while it writes, and
	// its own default is a minute. The client then connects again.
	writeTimeout = 2 * time.Second
)

// Conn is the connection to NATS.
var Conn = &run.Contract[*nats.Conn]{Name: "nats", Flags: flags, Dial: dial}

func flags(fs *pflag.FlagSet) {
	fs.String("nats-url", "", "comma-separated `URLs` of NATS servers, as in tls://host:4222. Except on this machine TLS is required: a tls:// URL, or --nats-ca-file")
	run.Required(fs, "nats-url")
	fs.String("nats-ca-file", "", "`file` with the certificates of the authorities that sign the NATS servers' certificates; makes TLS mandatory")
	fs.String("nats-cert-file", "", "`file` with the client certificate for NATS")
	fs.String("nats-key-file", "", "`file` with the key of that certificate")
	expiry.Flags(fs, expiry.Authorities, "nats-ca-file")
	expiry.Flags(fs, expiry.Own, "nats-cert-file")
	fs.String("nats-credentials-file", "", "`file` with the NATS user's JWT and seed")
	fs.String("nats-nkey-seed-file", "", "`file` with the seed of the NATS user's nkey. Give the watch hub a user that may publish changes.> and use hubs.heartbeat, and readers users that may only subscribe to it")
}

// dial returns a connection without waiting for the server.
func dial(_ context.Context, n *run.Node) (*nats.Conn, error) {
	server, _ := n.Flags.GetString("nats-url")
	security, err := security(n.Flags, n.Log)
	if err != nil {
		return nil, err
	}
	if !encrypted(n.Flags) {
		plain, err := checkPlain(server)
		if err != nil {
			return nil, err
		}
		if plain {
			// Servers that this one announces may be on other machines.
			security = append(security, nats.IgnoreDiscoveredServers())
		}
	}
	conn, err := Connect(n, server, security...)
	if err != nil {
		return nil, run.Usagef("--nats-url: %v", err)
	}
	return conn, nil
}

// encrypted reports whether the flags make TLS mandatory.
func encrypted(fs *pflag.FlagSet) bool {
	ca, _ := fs.GetString("nats-ca-file")
	cert, _ := fs.GetString("nats-cert-file")
	return ca != "" || cert != ""
}

// checkPlain returns a usage error for URLs of other machines without TLS. It reports
// whether any URL is without TLS.
func checkPlain(servers string) (plain bool, err error) {
	for server := range strings.SplitSeq(servers, ",") {
		server = strings.TrimSpace(server)
		if !strings.Contains(server, "://") {
			server = "nats://" + server
		}
		u, err := url.Parse(server)
		if err != nil {
			return false, run.Usagef("--nats-url: %v", err)
		}
		if u.Scheme == "tls" || u.Scheme == "wss" {
			continue
		}
		plain = true
		if !endpoint.Local(u.Hostname()) {
			return false, run.Usagef("--nats-url: %s is on another machine and not encrypted: use tls://%s, or give --nats-ca-file", u.Redacted(), u.Host)
		}
	}
	return plain, nil
}

// Connect returns the process's connection to NATS, which is closed when the process stops
// and is one of its readiness checks. It does not wait for the server, reconnects without
// limit, and logs when the connection is lost and restored. The options override the
// defaults.
func Connect(n *run.Node, server string, options ...nats.Option) (*nats.Conn, error) {
	log := n.Log
	conn, err := nats.Connect(server, append([]nats.Option{
		nats.Name("portico-" + n.Service),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.ReconnectBufSize(reconnectBuffer),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.FlusherTimeout(writeTimeout),
		nats.ReconnectOnFlusherError(),
		nats.ConnectHandler(func(c *nats.Conn) {
			server := c.ConnectedUrlRedacted()
			if c.Opts.InProcessServer != nil {
				server = "in this process" // the address is that of none
			}
			log.Info("connected", "to", "nats", "server", server)
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			log.Info("reconnected", "to", "nats", "server", c.ConnectedUrlRedacted())
		}),
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			if err != nil || !c.IsClosed() {
				log.Warn("connection lost, reconnecting", "to", "nats", "error", err)
			}
		}),
		nats.ErrorHandler(func(c *nats.Conn, s *nats.Subscription, err error) { logError(n, s, err) }),
	}, options...)...)
	if err != nil {
		return nil, err
	}
	if !conn.IsConnected() {
		log.Warn("cannot connect, retrying", "to", "nats", "error", conn.LastError())
	}
	n.OnExit(func() {
		if conn.IsConnected() {
			_ = conn.FlushTimeout(flushTimeout)
		}
		conn.Close()
	})
	n.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "portico_bus_subscriptions", Help: "Subscriptions of the process on NATS."},
		func() float64 { return float64(conn.NumSubscriptions()) }))
	n.Health.Add(run.Check{Name: "nats", Probe: func(context.Context) error {
		if !conn.IsConnected() {
			return errors.New("not connected to NATS")
		}
		return nil
	}})
	return conn, nil
}

func logError(n *run.Node, s *nats.Subscription, err error) {
	if s == nil {
		n.Log.Warn("connection error", "to", "nats", "error", err)
		return
	}
	if errors.Is(err, nats.ErrSlowConsumer) {
		dropped, _ := s.Dropped()
		n.Log.Warn("receiver too slow, messages dropped", "subject", s.Subject, "dropped", dropped)
		return
	}
	n.Log.Warn("subscription error", "subject", s.Subject, "error", err)
}

// security returns the TLS and authentication options of the flags. The files are read now,
// to reject invalid ones, and again for every connection. A certificate without its key, as while
// they are replaced, does not replace the former one.
func security(fs *pflag.FlagSet, log *slog.Logger) ([]nats.Option, error) {
	ca, _ := fs.GetString("nats-ca-file")
	cert, _ := fs.GetString("nats-cert-file")
	key, _ := fs.GetString("nats-key-file")
	user, _ := fs.GetString("nats-credentials-file")
	seed, _ := fs.GetString("nats-nkey-seed-file")
	if user != "" && seed != "" {
		return nil, run.Usagef("--nats-credentials-file and --nats-nkey-seed-file cannot be used together")
	}
	if (cert == "") != (key == "") {
		return nil, run.Usagef("--nats-cert-file and --nats-key-file must be used together")
	}
	var options []nats.Option
	for _, o := range []struct {
		flag, file string
		option     nats.Option
	}{
		{"--nats-ca-file", ca, nats.RootCAs(ca)},
		{"--nats-cert-file and --nats-key-file", cert, clientCert(cert, key, log)},
		{"--nats-credentials-file", user, nats.UserCredentials(user)},
		{"--nats-nkey-seed-file", seed, nkey(seed)},
	} {
		if o.file == "" {
			continue
		}
		_, err := os.Stat(o.file)
		if err == nil {
			err = o.option(&nats.Options{})
		}
		if err != nil {
			return nil, run.Usagef("%s: %v", o.flag, err)
		}
		options = append(options, o.option)
	}
	return options, nil
}

// clientCert shows a certificate, which is read again for every connection.
func clientCert(cert, key string, log *slog.Logger) nats.Option {
	read := sync.OnceValues(func() (*reload.Files[*tls.Certificate], error) {
		return keypair.Open(keypair.Files{What: "client certificate for NATS", Cert: cert, Key: key}, log)
	})
	return func(o *nats.Options) error {
		pair, err := read()
		if err != nil {
			return err
		}
		if o.TLSConfig == nil {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		o.TLSCertCB = func() (tls.Certificate, error) { return *pair.Get(), nil }
		o.Secure = true
		return nil
	}
}

// nkey authenticates with the seed in a file, which is read again for every connection and
// not kept in memory.
func nkey(file string) nats.Option {
	return func(o *nats.Options) error {
		option, err := nats.NkeyOptionFromSeed(file)
		if err != nil {
			return err
		}
		return option(o)
	}
}
