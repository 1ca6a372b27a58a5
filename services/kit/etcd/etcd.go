// Package etcd connects a service to etcd: the embedded one of the process, or the cluster
// of --etcd-servers. It does not define what is stored there. It serves "Persistence".
package etcd

import (
	"context"
	"crypto/tls"
	"net/url"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/portico-platform/portico/services/endpoint"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/expiry"
	"github.com/portico-platform/portico/services/rpc/window"
)

const (
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
	fs.StringSlice("etcd-servers", nil, "`URLs` of the etcd servers, as in https://host:2379, with commas between; http only on this machine")
	run.Required(fs, "etcd-servers")
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
	servers, err := n.Flags.GetStringSlice("etcd-servers")
	if err != nil {
		return nil, err
	}
	secured, err := Security(servers, n.Flags)
	if err != nil {
		return nil, err
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: servers, TLS: secured, Logger: zap.NewNop(),
		DialKeepAliveTime: keepaliveEvery, DialKeepAliveTimeout: keepaliveWait, PermitWithoutStream: true,
		MaxCallSendMsgSize: maxRequest, MaxCallRecvMsgSize: maxAnswer,
		DialOptions: DialOptions(),
	})
	if err != nil {
		return nil, run.Usagef("--etcd-servers: %v", err)
	}
	n.OnExit(func() { _ = client.Close() })
	n.Monitor("etcd", client.ActiveConnection())
	return client, nil
}

// Security returns the TLS configuration for the servers' URLs and the flags, nil for plain
// connections. The certificate file is read at every handshake. The error is run.ErrUsage if
// the settings contradict each other.
func Security(servers []string, fs *pflag.FlagSet) (*tls.Config, error) {
	secure := 0
	for _, server := range servers {
		u, err := url.Parse(server)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			return nil, run.Usagef("--etcd-servers: %q is not of the form https://host:2379", server)
		case u.Scheme == "https":
			secure++
		case !endpoint.Local(u.Hostname()):
			return nil, run.Usagef("--etcd-servers: %s is on another machine and not encrypted: use https://%s", u.Redacted(), u.Host)
		}
	}
	if secure != 0 && secure != len(servers) {
		return nil, run.Usagef("--etcd-servers: either all or none are https")
	}
	info := transport.TLSInfo{MinVersion: tls.VersionTLS12}
	info.TrustedCAFile, _ = fs.GetString("etcd-cafile")
	info.CertFile, _ = fs.GetString("etcd-certfile")
	info.KeyFile, _ = fs.GetString("etcd-keyfile")
	switch {
	case (info.CertFile == "") != (info.KeyFile == ""):
		return nil, run.Usagef("--etcd-certfile and --etcd-keyfile belong together")
	case secure == 0 && (info.TrustedCAFile != "" || info.CertFile != ""):
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
