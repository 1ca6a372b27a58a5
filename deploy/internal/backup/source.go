package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/portico-platform/portico/deploy/internal/progress"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/store/embedded"
)

// memberTimeout bounds the question that shows that a member of etcd is up to date.
const memberTimeout = 5 * time.Second

// source writes a snapshot of etcd, and returns a revision that it has at least. The bar counts the
// bytes.
type source func(ctx context.Context, w io.Writer, bar *progress.Bar) (least int64, err error)

// sourceFlags declares where a suite is, and returns what makes its source, with the data
// folder when that is what was named.
func sourceFlags(flags *pflag.FlagSet) func() (source, string, error) {
	dir := flags.String("data-dir", "", "data `folder` of an all-in-one, which may run")
	etcd.Flags(flags)
	return func() (source, string, error) {
		servers, err := flags.GetStringSlice("etcd-servers")
		if err != nil {
			return nil, "", err
		}
		switch {
		case (*dir == "") == (len(servers) == 0):
			return nil, "", usagef("either --data-dir or --etcd-servers says where the suite is")
		case *dir != "":
			if _, err := os.Stat(filepath.Join(*dir, "etcd", "member")); err != nil {
				return nil, "", usagef("--data-dir: there is no etcd in it: %v", err)
			}
			return fromFolder(*dir), *dir, nil
		}
		security, err := etcd.Security(servers, flags)
		if err != nil {
			return nil, "", usagef("%v", err)
		}
		return fromServers(servers, clientv3.Config{TLS: security, Logger: zap.NewNop(), DialTimeout: memberTimeout}), "", nil
	}
}

// fromServers takes the snapshot of the first member that gives one. It holds everything
// that was acknowledged before, whichever member that is.
func fromServers(servers []string, config clientv3.Config) source {
	return func(ctx context.Context, w io.Writer, bar *progress.Bar) (int64, error) {
		var failures []error
		for _, server := range servers {
			config.Endpoints = []string{server}
			least, started, err := fromMember(ctx, config, w, bar)
			if err == nil || started {
				return least, err
			}
			failures = append(failures, fmt.Errorf("%s: %w", server, err))
		}
		return 0, errors.Join(failures...)
	}
}

// fromMember reports with the error whether something was written already.
func fromMember(ctx context.Context, config clientv3.Config, w io.Writer, bar *progress.Bar) (least int64, started bool, err error) {
	client, err := clientv3.New(config)
	if err != nil {
		return 0, false, err
	}
	defer client.Close()
	asking, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	// The answer to a linearizable read comes when the member has caught up.
	answer, err := client.Get(asking, "/")
	if err != nil {
		return 0, false, err
	}
	if status, err := client.Status(asking, config.Endpoints[0]); err == nil {
		bar.SetTotal(status.DbSize)
	}
	snapshot, err := client.SnapshotWithVersion(ctx)
	if err != nil {
		return 0, false, err
	}
	defer snapshot.Snapshot.Close()
	n, err := io.Copy(io.MultiWriter(w, bar), snapshot.Snapshot)
	return answer.Header.Revision, n > 0, err
}

// fromFolder asks the all-in-one that uses a data folder; if there is none, it starts etcd
// on the folder for a moment: the log of a process that has crashed holds what is not in
// the database yet.
func fromFolder(dir string) source {
	return func(ctx context.Context, w io.Writer, bar *progress.Bar) (int64, error) {
		bar.SetTotal(sizeOf(filepath.Join(dir, "etcd", "member", "snap", "db")))
		counted := io.MultiWriter(w, bar)
		err := embedded.Snapshot(ctx, dir, counted)
		if !errors.Is(err, embedded.ErrNotRunning) {
			return 0, err
		}
		server, openError := embedded.Open(ctx, embedded.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if openError != nil {
			return 0, errors.Join(err, openError)
		}
		return 0, errors.Join(embedded.Snapshot(ctx, dir, counted), server.Close())
	}
}
