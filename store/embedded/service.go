// Package embedded runs etcd inside this process, for those who do not bring an
// etcd cluster of their own: one member, no listener, its data in the data
// directory. It offers the connection that package etcd otherwise makes to
// --etcd-servers; the store cannot tell the difference.
//
// It decides how that member is tuned and who may use its directory. It never
// reads or writes a key. It serves "Persistence" of the specification.
package embedded

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/etcd"
	"github.com/portico-platform/portico/services/run"
)

// Service returns etcd as a service of this process.
func Service() run.Service {
	return run.Service{
		Name:   "etcd",
		About:  "keeps the state, in this process (etcd)",
		Offers: []run.Dependency{etcd.Client},
		Flags: func(fs *pflag.FlagSet) {
			fs.String("data-dir", "./portico-data", "directory that holds everything this process keeps; etcd's part is below it in etcd")
		},
		Start: start,
	}
}

func start(ctx context.Context, n *run.Node) error {
	dir, err := n.Flags.GetString("data-dir")
	if err != nil {
		return err
	}
	if dir == "" {
		return run.Usagef("--data-dir must not be empty")
	}
	server, err := Open(ctx, dir, n.Log)
	if err != nil {
		return err
	}
	n.OnStop(func(context.Context) {
		if err := server.Close(); err != nil {
			n.Log.Warn("etcd did not close cleanly", "error", err)
		}
	})
	n.Go("etcd", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-server.Err():
			return err
		case <-server.Stopped():
			return errors.New("stopped unexpectedly")
		}
	})
	etcd.Client.Offer(n, server.Client)
	n.Log.Info("etcd is ready", "data-dir", dir)
	return nil
}
