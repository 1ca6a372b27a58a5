package backup

import (
	"context"
	"crypto/tls"
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

	"github.com/portico-platform/portico/internal/progress"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/store/embedded"
)

// memberTimeout bounds the question that shows that a member of etcd is up to date.
const memberTimeout = 5 * time.Second

// source writes a snapshot of etcd, and returns a revision that it has at least. The bar counts the
// bytes.
type source func(ctx context.Context, w io.Writer, bar *progress.Bar) (least int64, err error)

// sourceFlags declares where a suite is, and returns what makes its place.
func sourceFlags(flags *pflag.FlagSet) func() (place, error) {
	dir := flags.String("data-dir", "", "data `folder` of an all-in-one, which may run")
	etcd.Flags(flags)
	etcd.OverrideFlag(flags)
	mainOnly := flags.Bool("main-etcd-only", false, "save the main etcd alone, although the suite stores resources in others")
	return func() (place, error) {
		servers, err := flags.GetStringSlice("etcd-servers")
		if err != nil {
			return place{}, err
		}
		at := place{dataDir: *dir, mainOnly: *mainOnly}
		switch {
		case (*dir == "") == (len(servers) == 0):
			return place{}, usagef("either --data-dir or --etcd-servers says where the suite is")
		case *dir != "":
			if _, err := os.Stat(filepath.Join(*dir, "etcd", "member")); err != nil {
				return place{}, usagef("--data-dir: there is no etcd in it: %v", err)
			}
			at.main = fromFolder(*dir)
		default:
			security, err := etcd.Security(servers, flags)
			if err != nil {
				return place{}, usagef("%v", err)
			}
			at.main = fromServers(servers, security)
		}
		at.overrides, err = overrideSources(flags)
		if err == nil && at.mainOnly && len(at.overrides) > 0 {
			err = usagef("--main-etcd-only and --etcd-servers-overrides contradict each other")
		}
		return at, err
	}
}

// overrideSources returns the sources of --etcd-servers-overrides.
func overrideSources(flags *pflag.FlagSet) (sources []overridden, err error) {
	overrides, err := etcd.ParseAnyOverrides(flags)
	if err != nil {
		return nil, usagef("%v", err)
	}
	for _, o := range overrides {
		security, err := o.Security(flags)
		if err != nil {
			return nil, usagef("%v", err)
		}
		sources = append(sources, overridden{o, fromServers(o.Servers, security)})
	}
	return sources, nil
}

// fromServers takes the snapshot of the first member that gives one. It holds everything
// that was acknowledged before, whichever member that is.
func fromServers(servers []string, security *tls.Config) source {
	config := clientv3.Config{TLS: security, Logger: zap.NewNop(), DialTimeout: memberTimeout}
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
