// Command balancer spreads TCP connections over the addresses of front doors. deploy/compose
// uses it in place of the load balancer of a platform.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

func main() {
	run.Main(run.App{
		Name:     "balancer",
		About:    "spreads TCP connections over all ready front doors that a name stands for",
		Services: []run.Service{service()},
	})
}

func service() run.Service {
	return run.Service{
		Name:  "balancer",
		About: "forwards connections to front doors",
		Flags: func(fs *pflag.FlagSet) {
			fs.String("listen-address", "127.0.0.1:6443", "`address` to take connections on")
			fs.StringSlice("to", nil, "comma-separated `name:port` of the front doors; names are resolved every second, and all their addresses are used")
			run.Required(fs, "to")
			fs.String("ca-file", "", "`file` with the authorities that sign the front doors' certificates")
			run.Required(fs, "ca-file")
			fs.String("server-name", "frontdoor", "`name` that those certificates hold for")
		},
		Start: start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	to, _ := n.Flags.GetStringSlice("to")
	for _, name := range to {
		if _, _, err := net.SplitHostPort(name); err != nil {
			return run.Usagef("--to: %v", err)
		}
	}
	file, _ := n.Flags.GetString("ca-file")
	content, err := os.ReadFile(file)
	if err != nil {
		return run.Usagef("--ca-file: %v", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(content) {
		return run.Usagef("--ca-file: %s has no certificate", file)
	}
	name, _ := n.Flags.GetString("server-name")
	b := newBalancer(n.Log, func(ctx context.Context) ([]string, error) { return resolve(ctx, to) }, &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS12})
	address, _ := n.Flags.GetString("listen-address")
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen-address: %w", err)
	}
	n.Health.Add(run.Check{Name: "frontdoor", Probe: func(context.Context) error {
		if b.ready() == 0 {
			return errors.New("no front door is ready")
		}
		return nil
	}})
	b.refresh(ctx)
	n.OnStop(func(context.Context) {
		_ = listener.Close()
		b.close()
	})
	n.Go("watching front doors", b.watch)
	n.Go("taking connections", func(context.Context) error {
		if err := b.serve(listener); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return nil
}

// resolve returns all addresses of names, and the errors of those that have
// none.
func resolve(ctx context.Context, names []string) (all []string, err error) {
	for _, name := range names {
		host, port, invalid := net.SplitHostPort(name)
		if invalid != nil {
			return nil, invalid
		}
		found, failed := net.DefaultResolver.LookupHost(ctx, host)
		err = errors.Join(err, failed)
		for _, address := range found {
			all = append(all, net.JoinHostPort(address, port))
		}
	}
	return all, err
}
