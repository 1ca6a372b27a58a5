package embedded

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/portico-platform/portico/services/etcd"
)

// lookEvery is how old what is known of the disk may be.
const lookEvery = 50 * time.Millisecond

// disk knows how much room the data directory has. etcd ends when it cannot write
// its log, so writes are refused before that; the reserve is for deletions,
// compaction and the log's next segment.
type disk struct {
	dir     string
	reserve int64

	looked atomic.Int64 // Unix nanoseconds
	free   atomic.Int64 // bytes
}

// Free returns how many bytes are free for this process.
func (d *disk) Free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", d.dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between systems
}

// check returns NoSpace when less than the reserve is free. A disk that does not
// tell is not full.
func (d *disk) check() error {
	now := time.Now().UnixNano()
	if now-d.looked.Load() > int64(lookEvery) {
		free, err := d.Free()
		if err != nil {
			return nil
		}
		d.free.Store(free)
		d.looked.Store(now)
	}
	if free := d.free.Load(); free < d.reserve {
		return &etcd.NoSpace{Reason: fmt.Sprintf(
			"the disk of the data directory is full: %d MiB are free, and %d MiB are kept in reserve; only deletions are taken until there is room again",
			free>>20, d.reserve>>20)}
	}
	return nil
}
