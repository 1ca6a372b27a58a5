package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// defaultQuota is the largest size that etcd recommends for its database.
	defaultQuota = 8 << 30
	// quotaSlack is space beyond the quota for writes in flight when it is reached.
	quotaSlack = 64 << 20
	// defaultReserve is two segments of etcd's write-ahead log, of 64 MB each: etcd
	// allocates the next one before the last is full.
	defaultReserve = 128 << 20
	// maxRequestBytes is the maximum body of a request to the API (3 MiB), with space for
	// defaults and managedFields.
	maxRequestBytes = 4 << 20
	// Each tick of raft wakes up the process. A single member has no peers, and its start
	// does not wait for the election timeout, which bounds the shortest lease: 2 s.
	tickMs, electionMs = 250, 1250
	// snapshotEntries is how many raft entries etcd keeps in the log between two
	// snapshots, and catchUpEntries how many it keeps in memory for followers beside
	// the hundred that it compacts at a time. Each may hold a request of maximum size,
	// and a single member has no followers. (0 would be etcd's default of 5000.)
	snapshotEntries = 1_000
	catchUpEntries  = 1
)

// Server is an etcd member in this process.
type Server struct {
	// Client calls the member directly, without a network.
	Client *clientv3.Client

	disconnect func() // ends Client and its watches

	etcd  *embed.Etcd
	lock  *fileutil.LockedFile
	log   *slog.Logger
	disk  *disk
	quota int64
	stop  context.CancelFunc
	space chan struct{} // closed when the space is no longer monitored
	// reading is held while a snapshot is read, which a defragmentation would wait for.
	reading      sync.Mutex
	endSnapshots func() error
}

// Config configures a member.
type Config struct {
	// Dir is the data directory; etcd's files are below it.
	Dir string
	Log *slog.Logger
	// QuotaBytes bounds the database, and ReserveBytes is the free disk space that writes
	// other than deletions require. Zero values select defaults.
	QuotaBytes, ReserveBytes int64
	// NoSync leaves it to the system when writes reach the disk: data is lost if the machine
	// stops. It is for tests.
	NoSync bool
}

// Open starts an etcd member and returns when it serves requests. It returns an error if
// another process uses the directory.
func Open(ctx context.Context, c Config) (*Server, error) {
	c.QuotaBytes, c.ReserveBytes = cmp.Or(c.QuotaBytes, defaultQuota), cmp.Or(c.ReserveBytes, defaultReserve)
	dir, err := filepath.Abs(filepath.Join(c.Dir, "etcd"))
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
	if c.NoSync {
		smallSegments()
	}
	etcd, err := startElected(ctx, config(dir, c))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd in %s: %w", dir, err), lock.Close())
	}
	client, disconnect := connect(etcd.Server)
	s := &Server{Client: client, disconnect: disconnect, etcd: etcd, lock: lock, log: c.Log, quota: c.QuotaBytes,
		disk: &disk{dir: dir, reserve: c.ReserveBytes}, space: make(chan struct{})}
	s.Client.KV = &guarded{KV: s.Client.KV, room: s.room}
	var looking context.Context
	looking, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(s.space)
		select {
		case <-etcd.Server.ReadyNotify():
			s.keepSpace(looking)
		case <-looking.Done():
		}
	}()
	select {
	case <-etcd.Server.ReadyNotify():
		if s.endSnapshots, err = s.serveSnapshots(); err != nil {
			c.Log.Warn("backups of the data directory need the process to be stopped", "error", err)
		}
		return s, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-etcd.Server.StopNotify():
		err = errors.New("it stopped")
	}
	return nil, errors.Join(fmt.Errorf("etcd in %s did not become ready: %w", dir, err), s.Close())
}

// smallSegments makes etcd preallocate 4 MB instead of 64 MB twice for its write-ahead log,
// which takes longer than the rest of its start where files are in memory.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = 4 << 20 })

// takeLock locks the data directory. It returns an error if another process has locked it,
// while etcd's own locks would block without a timeout.
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

// config returns the configuration of a single member without listeners, which only this
// process can reach.
func config(dir string, own Config) *embed.Config {
	c := embed.NewConfig()
	c.Name = "portico"
	c.Dir = dir
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.TickMs, c.ElectionMs = tickMs, electionMs
	c.QuotaBackendBytes, c.MaxRequestBytes = own.QuotaBytes+own.QuotaBytes/8+quotaSlack, maxRequestBytes
	c.SnapshotCount, c.SnapshotCatchUpEntries = snapshotEntries, catchUpEntries
	c.UnsafeNoFsync = own.NoSync
	// The watch hub compacts by age: etcd must not compact on its own.
	c.AutoCompactionRetention = "0"
	c.WatchProgressNotifyInterval = time.Minute
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(newLogger(own.Log))
	return c
}

// Err returns the channel on which etcd reports failures after its start.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Stopped returns a channel that is closed when etcd has stopped, for any reason.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Close stops the member. All acknowledged writes are on disk.
func (s *Server) Close() error {
	s.stop()
	<-s.space
	var snapshots error
	if s.endSnapshots != nil {
		snapshots = s.endSnapshots()
	}
	s.disconnect()
	s.etcd.Close()
	return errors.Join(snapshots, s.lock.Close())
}
