package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/etcd"
)

const (
	// spaceEvery is the period of the check of etcd's database.
	spaceEvery = time.Second
	// cutEvery is the minimum time between two early compactions unless the database is
	// nearly full: each of them expires watches and lists of older revisions.
	cutEvery = 30 * time.Second
	// calm is the maximum number of revisions per spaceEvery under low load. A
	// defragmentation blocks all requests, so it waits for low load unless the database
	// is nearly full.
	calm = 200
)

// space keeps etcd's database below its quota. The file only grows: space that compaction
// frees is reused, but counts towards the quota until the file is defragmented.
//
// Writes are rejected before they reach etcd: a write that etcd itself rejects because
// of its quota may have been applied anyway. etcd's quota is a little larger than that of
// this package, so that this happens only with very many writes in flight.
//
// If the database fills up before history expires, space compacts early; if much of the
// file is free, it defragments; and when there is space again, it disarms the alarm that
// etcd may have raised, so that an operator only has to delete objects.
type space struct {
	server  *Server
	revised int64     // the revision at the previous check
	cut     int64     // the revision of the last early compaction
	cutAt   time.Time // and its time
	full    bool      // at the previous check
	// compacted is true from an early compaction until the file has been defragmented or
	// is below the quota.
	compacted bool
}

// sizes holds the sizes of etcd's database.
type sizes struct {
	file, used, quota int64
	alarm             bool // etcd rejects writes because its own quota was reached
}

// full reports whether only deletions are accepted.
func (s sizes) full() bool { return s.alarm || s.file >= s.quota }

func (s sizes) free() int64 { return s.file - s.used }

// above reports whether n exceeds that percentage of the quota.
func (s sizes) above(percent, n int64) bool { return n > s.quota/100*percent }

// sizes returns the current sizes of the database.
func (s *Server) sizes() sizes {
	backend := s.etcd.Server.Backend()
	now := sizes{file: backend.Size(), used: backend.SizeInUse(), quota: s.quota}
	for _, alarm := range s.etcd.Server.Alarms() {
		now.alarm = now.alarm || alarm.Alarm == etcdserverpb.AlarmType_NOSPACE
	}
	return now
}

// Full returns NoSpace while only deletions are accepted, otherwise nil.
func (s *Server) Full() error {
	if now := s.sizes(); now.full() {
		return now.refusal()
	}
	return s.disk.check(true)
}

// room returns NoSpace if a write must be rejected.
func (s *Server) room(put bool) error {
	if file := s.etcd.Server.Backend().Size(); put && file >= s.quota {
		return sizes{file: file, quota: s.quota}.refusal()
	}
	return s.disk.check(put)
}

func (s sizes) refusal() error {
	return &etcd.NoSpace{Reason: fmt.Sprintf(
		"etcd's database has reached its quota: it takes %d of %d MiB; only deletions are accepted until there is room again (--quota-backend-bytes)",
		s.file>>20, s.quota>>20)}
}

// keepSpace monitors the space until ctx ends.
func (s *Server) keepSpace(ctx context.Context) {
	ticker := time.NewTicker(spaceEvery)
	defer ticker.Stop()
	keeper := &space{server: s}
	for {
		select {
		case now := <-ticker.C:
			if err := keeper.check(ctx, now); err != nil && ctx.Err() == nil {
				s.log.Warn("freeing space in etcd's database failed", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// check compacts, defragments or disarms the alarm as needed.
func (k *space) check(ctx context.Context, now time.Time) error {
	s := k.server
	revision := s.etcd.Server.KV().Rev()
	before := k.revised
	k.revised = revision
	if before == 0 {
		return nil
	}
	size := s.sizes()
	k.report(size)
	pressed := size.full() || size.above(95, size.used)
	// etcd counts freed pages as used until later transactions, and a full database may
	// get none: a full database is defragmented after a compaction even if etcd reports
	// little free space.
	overdue := k.compacted && size.full()
	k.compacted = overdue
	if before > k.cut && (pressed || size.above(75, size.used) && now.Sub(k.cutAt) > cutEvery) {
		if err := k.cutHistory(ctx, before, now, size); err != nil {
			return err
		}
		k.compacted = true
		size = s.sizes()
	}
	calmly := revision-before <= calm
	if overdue || wasteful(size) && (calmly || pressed || size.above(90, size.file)) {
		if err := k.defragment(size); err != nil {
			return err
		}
		k.compacted = false
		size = s.sizes()
	}
	if size.alarm && !size.above(90, size.file) {
		if _, err := s.Client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
			return fmt.Errorf("disarming the alarm: %w", err)
		}
		size.alarm = false
	}
	k.report(size)
	return nil
}

// report logs when writes are no longer accepted, and when they are accepted again.
func (k *space) report(size sizes) {
	if size.full() == k.full {
		return
	}
	if k.full = size.full(); k.full {
		k.server.log.Error("etcd's database has reached its quota, writes other than deletions are refused",
			"bytes", size.file, "used", size.used, "quota", size.quota)
	} else {
		k.server.log.Warn("etcd's database has room again, writes are accepted", "bytes", size.file, "used", size.used, "quota", size.quota)
	}
}

// cutHistory compacts to the newest revision of the previous check, so that watchers that
// do not lag are not affected.
func (k *space) cutHistory(ctx context.Context, revision int64, now time.Time, size sizes) error {
	_, err := k.server.Client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compacting early: %w", err)
	}
	k.server.log.Warn("etcd's database is filling up, compacted early: older watches and lists have expired",
		"revision", revision, "bytes", size.used, "quota", size.quota)
	k.cut, k.cutAt = revision, now
	return nil
}

// wasteful reports whether enough of the file is free to justify the pause of a
// defragmentation.
func wasteful(size sizes) bool {
	switch {
	case size.full():
		return size.free() > size.file/10
	case size.above(75, size.file):
		return size.free() > size.file/4
	}
	return size.above(50, size.file) && size.free() > size.file/2
}

// defragment returns the free part of the file to the disk. It blocks all requests,
// about as long as it takes to write the used part.
func (k *space) defragment(size sizes) error {
	s := k.server
	if free, err := s.disk.Free(); err == nil && free < size.used+s.disk.reserve/2 {
		return fmt.Errorf("not enough disk space to defragment: %d MiB are free, the copy takes %d", free>>20, size.used>>20)
	}
	if !s.reading.TryLock() {
		return errors.New("no defragmentation while a snapshot is being read")
	}
	defer s.reading.Unlock()
	start := time.Now()
	if err := s.etcd.Server.Backend().Defrag(); err != nil {
		return fmt.Errorf("defragmenting: %w", err)
	}
	s.log.Info("etcd's database was defragmented", "bytes_before", size.file, "bytes", s.sizes().file, "pause", time.Since(start).String())
	return nil
}
