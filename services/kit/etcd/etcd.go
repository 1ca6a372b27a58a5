// Package etcd connects a service to etcd: the embedded one of the process, or the cluster
// of --etcd-servers, and to the clusters of --etcd-servers-overrides. It does not define what
// is stored there. It serves "Persistence".
package etcd

import (
	"context"
	"crypto/tls"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/keypair"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/rpc/window"
)

const (
	flagServers   = "etcd-servers"
	flagOverrides = "etcd-servers-overrides"

	keepaliveEvery = 10 * time.Second
	keepaliveWait  = 5 * time.Second
	// connectWait bounds one attempt to connect.
	connectWait = 3 * time.Second
	// maxRequest is larger than etcd's own limit, so that etcd rejects requests that are
	// too large.
	maxRequest = 16 << 20
	maxAnswer  = 1 << 30
)

// Client is the connection to etcd.
var Client = &run.Contract[*clientv3.Client]{Name: "etcd", Flags: Flags, Dial: dial}

// Flags declares the flags that say where etcd is and how to connect to it.
func Flags(fs *pflag.FlagSet) {
	fs.StringSlice(flagServers, nil, "comma-separated `URLs` of the etcd servers, as in https://host:2379; http only on this machine")
	run.Required(fs, flagServers)
	fileFlags(fs)
}

// fileFlags declares the flags of the files for all etcd servers.
func fileFlags(fs *pflag.FlagSet) {
	if fs.Lookup("etcd-cafile") != nil {
		return
	}
	fs.String("etcd-cafile", "", "`file` with the certificates of the authorities that sign the etcd servers' certificates")
	fs.String("etcd-certfile", "", "`file` with the client certificate for etcd")
	fs.String("etcd-keyfile", "", "`file` with the key of that certificate")
	expiry.Flags(fs, expiry.Authorities, "etcd-cafile")
	expiry.Flags(fs, expiry.Own, "etcd-certfile")
}

// DialOptions returns the options of every connection to etcd: they track which requests
// were sent, and bound the reconnect backoff to half a second.
func DialOptions() []grpc.DialOption {
	return append(window.Client(),
		grpc.WithStatsHandler(tracker{}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: connectWait,
		}),
	)
}

// dial returns a client without waiting for the servers. Node.Monitor logs the state of
// its connection, so the client library does not log.
func dial(_ context.Context, n *run.Node) (*clientv3.Client, error) {
	servers, err := n.Flags.GetStringSlice(flagServers)
	if err != nil {
		return nil, err
	}
	return connect(n, flagServers, "etcd", servers)
}

// connect returns a client of the servers that a flag names, whose connection is monitored by
// a name.
func connect(n *run.Node, flag, name string, servers []string) (*clientv3.Client, error) {
	secured, err := security(flag, servers, n.Flags)
	if err == nil {
		err = keepCertificate(secured, n)
	}
	if err != nil {
		return nil, err
	}
	client, err := Connect(clientv3.Config{
		Endpoints: servers, TLS: secured, Logger: zap.NewNop(),
		DialKeepAliveTime: keepaliveEvery, DialKeepAliveTimeout: keepaliveWait, PermitWithoutStream: true,
		MaxCallSendMsgSize: maxRequest, MaxCallRecvMsgSize: maxAnswer,
		DialOptions: DialOptions(),
	}, n.Log)
	if err != nil {
		return nil, run.Usagef("--%s: %v", flag, err)
	}
	n.OnExit(func() { _ = client.Close() })
	n.Monitor(name, flag == flagOverrides, client.ActiveConnection())
	return client, nil
}

// Security returns the TLS configuration for the servers' URLs and the flags, nil for plain
// connections. The certificate file is read at every handshake. The error is run.ErrUsage if
// the settings contradict each other.
func Security(servers []string, fs *pflag.FlagSet) (*tls.Config, error) {
	return security(flagServers, servers, fs)
}

func security(flag string, servers []string, fs *pflag.FlagSet) (*tls.Config, error) {
	secure := 0
	for _, server := range servers {
		u, err := url.Parse(server)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return nil, run.Usagef("--%s: %q is not of the form https://host:2379", flag, server)
		case u.Scheme == "https":
			secure++
		case !endpoint.Local(u.Hostname()):
			return nil, run.Usagef("--%s: %s is on another machine and not encrypted: use https://%s", flag, u.Redacted(), u.Host)
		}
	}
	if secure != 0 && secure != len(servers) {
		return nil, run.Usagef("--%s: either all or none are https", flag)
	}
	info := transport.TLSInfo{MinVersion: tls.VersionTLS12}
	info.TrustedCAFile, _ = fs.GetString("etcd-cafile")
	info.CertFile, _ = fs.GetString("etcd-certfile")
	info.KeyFile, _ = fs.GetString("etcd-keyfile")
	switch {
	case (info.CertFile == "") != (info.KeyFile == ""):
		return nil, run.Usagef("--etcd-certfile and --etcd-keyfile must be used together")
	case !anySecure(fs) && (info.TrustedCAFile != "" || info.CertFile != ""):
		return nil, run.Usagef("--etcd-cafile and --etcd-certfile need --etcd-servers with https")
	case secure == 0:
		return nil, nil
	}
	config, err := info.ClientConfig()
	if err != nil {
		return nil, run.Usagef("--etcd-cafile, --etcd-certfile, --etcd-keyfile: %v", err)
	}
	return config, nil
}

// keepCertificate makes a client use its former certificate while the files hold a certificate and a
// key that do not belong together, as while they are replaced.
func keepCertificate(config *tls.Config, n *run.Node) error {
	cert, _ := n.Flags.GetString("etcd-certfile")
	if config == nil || cert == "" {
		return nil
	}
	key, _ := n.Flags.GetString("etcd-keyfile")
	pair, err := keypair.Open(keypair.Files{What: "client certificate for etcd", Cert: cert, Key: key}, n.Log)
	if err != nil {
		return err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair.Get(), nil }
	return nil
}

// anySecure reports whether the connections to some etcd use TLS.
func anySecure(fs *pflag.FlagSet) bool {
	for _, name := range []string{flagServers, flagOverrides} {
		if f := fs.Lookup(name); f != nil && strings.Contains(f.Value.String(), "https://") {
			return true
		}
	}
	return false
}
