package embedded

import (
	"fmt"
	"syscall"

	"github.com/portico-platform/portico/services/kit/etcd"
)

// disk measures the free space of the data directory. etcd exits when it cannot write
// its log or its database, so writes are rejected before that. An acknowledged write
// reaches the database up to 100 ms later: half of the reserve is for these writes, in
// case another process fills the disk in the meantime.
type disk struct {
	dir     string
	reserve int64
}

// Free returns how many bytes are free for this process.
func (d *disk) Free() (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", d.dir, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ between platforms
}

// check returns NoSpace if a write must be rejected: a put if less than the reserve is
// free, any write if less than half of it is. It returns nil if the free space is unknown.
func (d *disk) check(put bool) error {
	free, err := d.Free()
	what := "only deletions are accepted"
	switch {
	case err != nil || free >= d.reserve:
		return nil
	case free < d.reserve/2:
		what = "no writes are accepted"
	case !put:
		return nil
	}
	return &etcd.NoSpace{Reason: fmt.Sprintf(
		"the disk of the data directory is full: %d MiB are free, and %d MiB are kept in reserve; %s until there is room again (--disk-reserve-bytes)",
		free>>20, d.reserve>>20, what)}
}
