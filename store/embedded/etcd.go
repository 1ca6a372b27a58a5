package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

const (
	// quota is etcd's advised maximum for its database.
	quota = 8 << 30
	// maxRequestBytes lets every body that the API accepts (3 MiB) through, with
	// room for what defaulting and managed fields add to it.
	maxRequestBytes = 4 << 20
	// A single member has nobody to agree with: a short election only shortens
	// its start.
	tickMs, electionMs = 10, 100
	// snapshotEntries is how many raft entries etcd keeps in memory and in the log
	// between two snapshots. A single member has no follower to send them to.
	snapshotEntries = 1_000
)

// Server is an etcd member in this process.
type Server struct {
	// Client calls the member directly, without a network.
	Client *clientv3.Client

	etcd *embed.Etcd
	lock *fileutil.LockedFile
}

// Open starts an etcd member with its data in <dir>/etcd and returns when it
// serves. A dir that another process uses is an error.
func Open(ctx context.Context, dir string, log *slog.Logger) (*Server, error) {
	dir, err := filepath.Abs(filepath.Join(dir, "etcd"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := takeLock(dir + ".lock")
	if err != nil {
		return nil, err
	}
	etcd, err := embed.StartEtcd(config(dir, log))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd in %s: %w", dir, err), lock.Close())
	}
	s := &Server{Client: v3client.New(etcd.Server), etcd: etcd, lock: lock}
	select {
	case <-etcd.Server.ReadyNotify():
		return s, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-etcd.Server.StopNotify():
		err = errors.New("it stopped")
	}
	return nil, errors.Join(fmt.Errorf("etcd in %s did not become ready: %w", dir, err), s.Close())
}

// takeLock makes this process the only user of the directory that file is in.
// etcd has locks of its own but waits for them without an end.
func takeLock(file string) (*fileutil.LockedFile, error) {
	lock, err := fileutil.TryLockFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("data directory %s is in use by another process", filepath.Dir(file))
	}
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}
	return lock, nil
}

// config describes a single member that nobody reaches but this process: it has
// no listener, not even a local one.
func config(dir string, log *slog.Logger) *embed.Config {
	c := embed.NewConfig()
	c.Name = "portico"
	c.Dir = dir
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = tickMs, electionMs
	c.QuotaBackendBytes, c.MaxRequestBytes = quota, maxRequestBytes
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEntries, snapshotEntries
	// The watch hub compacts, by age: etcd must not forget on its own.
	c.AutoCompactionRetention = "0"
	c.WatchProgressNotifyInterval = time.Minute
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(log))
	return c
}

// Err returns the channel on which etcd reports a failure while it serves.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Stopped returns a channel that is closed when etcd has stopped, also on its own.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close stops the member cleanly; everything it acknowledged is on disk.
func (s *Server) Close() error {
	// This client has no connection to close, and says so with its context's error.
	_ = s.Client.Close()
	s.etcd.Close()
	return s.lock.Close()
}
