// Command etcd is a member of etcd for tests that need it as a separate process: mutual TLS on
// loopback addresses, its data in a folder. Without other members it is a cluster of its own.
package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	m := member{tls: transport.TLSInfo{ClientCertAuth: true}}
	flag.StringVar(&m.address, "address", "", "address to listen on")
	flag.StringVar(&m.dir, "dir", "", "folder of the data")
	flag.StringVar(&m.token, "token", "", "what makes the id of a cluster that begins")
	flag.StringVar(&m.name, "name", embed.DefaultName, "name of the member")
	flag.StringVar(&m.peer, "peer", "", "address for other members; there are none when empty")
	flag.StringVar(&m.cluster, "cluster", "", "names and peer URLs of all members")
	flag.StringVar(&m.state, "state", embed.ClusterStateFlagNew, "new, or existing for a member that joins")
	flag.StringVar(&m.tls.TrustedCAFile, "ca", "", "authority of the clients and members")
	flag.StringVar(&m.tls.CertFile, "cert", "", "certificate")
	flag.StringVar(&m.tls.KeyFile, "key", "", "its key")
	flag.Parse()
	if err := m.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

type member struct {
	address, dir, token        string
	name, peer, cluster, state string
	tls                        transport.TLSInfo
}

// serve runs until the process is stopped. Acknowledged writes are on disk.
func (m member) serve() error {
	config := embed.NewConfig()
	config.Name, config.Dir, config.LogLevel = m.name, m.dir, "warn"
	client := url.URL{Scheme: "https", Host: m.address}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	if m.peer != "" {
		peer = url.URL{Scheme: "https", Host: m.peer}
		config.PeerTLSInfo = m.tls
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// With a port of its own for HTTP, the other one serves gRPC alone, as in the chart.
	config.ListenClientHttpUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialClusterToken, config.ClusterState = m.token, m.state
	config.InitialCluster = m.cluster
	if m.cluster == "" {
		config.InitialCluster = config.InitialClusterFromName(config.Name)
		// A single member has no followers, so it need not hold the last 5000 requests in
		// memory for them. (0 is the default.)
		config.SnapshotCatchUpEntries = 1
	}
	config.ClientTLSInfo = m.tls
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}
