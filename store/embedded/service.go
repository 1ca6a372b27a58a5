// Package embedded runs etcd inside this process, for installations without an external
// etcd cluster: one member without listeners, with its data in the data directory. It
// provides the client that package etcd otherwise connects to --etcd-servers.
//
// It configures the member, keeps its database below the quota and locks its directory. It
// never reads or writes a key. It serves "Persistence" of the specification.
package embedded

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/run"
)

// Service returns etcd as a service of this process.
func Service() run.Service {
	return run.Service{
		Name:   "etcd",
		About:  "runs etcd in this process",
		Offers: []run.Dependency{etcd.Client},
		Flags: func(fs *pflag.FlagSet) {
			fs.String("data-dir", "./portico-data", "data directory of this process; etcd's data is in its subdirectory etcd")
			fs.Int64("quota-backend-bytes", defaultQuota, "maximum size of etcd's database in bytes; beyond it only deletions are accepted")
			fs.Bool("unsafe-no-fsync", false, "do not wait until writes are on disk, for tests: data is lost when the machine stops")
			fs.Int64("disk-reserve-bytes", defaultReserve, "bytes to keep free on the disk of the data directory; with less, only deletions are accepted")
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
	config := Config{Dir: dir, Log: n.Log}
	config.NoSync, _ = n.Flags.GetBool("unsafe-no-fsync")
	config.QuotaBytes, _ = n.Flags.GetInt64("quota-backend-bytes")
	config.ReserveBytes, _ = n.Flags.GetInt64("disk-reserve-bytes")
	if config.QuotaBytes <= 0 || config.ReserveBytes <= 0 {
		return run.Usagef("--quota-backend-bytes and --disk-reserve-bytes must be greater than 0")
	}
	server, err := Open(ctx, config)
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
	observe(n, server)
	etcd.Client.Offer(n, server.Client)
	n.Log.Info("etcd is ready", "data-dir", dir)
	return nil
}

// observe registers the health checks and metrics of the database and disk space.
func observe(n *run.Node, server *Server) {
	n.Health.Add(run.Check{Name: "etcd", Probe: func(ctx context.Context) error {
		_, err := server.Client.Get(ctx, "/", clientv3.WithSerializable())
		return err
	}})
	n.Health.Add(run.Check{Name: "etcd-space", Probe: func(context.Context) error { return server.Full() }})
	gauge := func(name, help string, value func() int64) {
		n.Metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "portico", Subsystem: "etcd", Name: name, Help: help,
		}, func() float64 { return float64(value()) }))
	}
	gauge("database_bytes", "Size of etcd's database file, which its quota bounds.", func() int64 { return server.sizes().file })
	gauge("database_used_bytes", "Bytes of the database file that are in use.", func() int64 { return server.sizes().used })
	gauge("quota_bytes", "Quota of the database file.", func() int64 { return server.quota })
	gauge("disk_free_bytes", "Bytes that are free on the disk of the data directory.", func() int64 {
		free, _ := server.disk.Free()
		return free
	})
}
