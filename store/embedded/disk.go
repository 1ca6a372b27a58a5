package embedded

import (
	"fmt"
	"syscall"

	"github.com/portico-platform/portico/services/kit/etcd"
)

// disk measures the free space of the data directory. etcd exits when it cannot write
// its log or its database, so writes are refused before that. An acknowledged write
// reaches the database up to a tenth of a second later: half of the reserve is for
// that, however fast another process fills the disk meanwhile.
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

// check returns NoSpace if a write has to be refused: a put with less than the reserve
// free, any write with less than half of it. A disk whose free space is unknown counts
// as not full.
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
