// Command etcd is an etcd of one member for tests that need it as a separate process:
// mutual TLS on a loopback address, its data in a folder.
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
	address := flag.String("address", "", "address to listen on")
	dir := flag.String("dir", "", "folder of the data")
	token := flag.String("token", "", "what makes the id of a cluster that begins")
	tls := transport.TLSInfo{ClientCertAuth: true}
	flag.StringVar(&tls.TrustedCAFile, "ca", "", "authority of the clients")
	flag.StringVar(&tls.CertFile, "cert", "", "certificate")
	flag.StringVar(&tls.KeyFile, "key", "", "its key")
	flag.Parse()
	if err := serve(*address, *dir, *token, tls); err != nil {
		fmt.Fprintln(os.Stderr, "etcd:", err)
		os.Exit(1)
	}
}

// serve runs until the process is stopped. Acknowledged writes are on disk.
func serve(address, dir, token string, tls transport.TLSInfo) error {
	config := embed.NewConfig()
	config.Dir, config.LogLevel = dir, "warn"
	client := url.URL{Scheme: "https", Host: address}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	// With a port of its own for HTTP, the other one serves gRPC alone, as in the chart.
	config.ListenClientHttpUrls = []url.URL{{Scheme: "https", Host: "127.0.0.1:0"}}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialClusterToken = token
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.ClientTLSInfo = tls
	// A single member has no followers, so it need not hold the last 5000 requests in
	// memory for them. (0 is the default.)
	config.SnapshotCatchUpEntries = 1
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	return <-server.Err()
}
