// Command nats is a NATS server for tests that need it as a separate process: core NATS
// with mutual TLS on a loopback address, without persistence, with the permissions in
// deploy/nats.
package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	address := flag.String("address", "", "address to listen on")
	permissions := flag.String("permissions", "", "configuration file with the users")
	tls := server.TLSConfigOpts{Verify: true}
	flag.StringVar(&tls.CaFile, "ca", "", "authority of the clients")
	flag.StringVar(&tls.CertFile, "cert", "", "certificate")
	flag.StringVar(&tls.KeyFile, "key", "", "its key")
	flag.Parse()
	if err := serve(*address, *permissions, &tls); err != nil {
		fmt.Fprintln(os.Stderr, "nats:", err)
		os.Exit(1)
	}
}

func serve(address, permissions string, tls *server.TLSConfigOpts) error {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	options, err := server.ProcessConfigFile(permissions)
	if err != nil {
		return err
	}
	options.Host, options.Port, options.MaxPayload = host, port, 8<<20
	options.TLS, options.TLSVerify, options.TLSMap, options.TLSTimeout = true, true, true, 5
	if options.TLSConfig, err = server.GenTLSConfig(tls); err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.Start()
	s.WaitForShutdown()
	return nil
}
