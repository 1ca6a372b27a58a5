package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services/kit/etcd"
)

// smallDisk mounts a tmpfs of a given size, if permitted.
func smallDisk(t *testing.T, bytes int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		t.Skipf("no disk of a small size can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestAFullDiskEndsNothing: other data fills the disk of the data directory. Writes are
// rejected, reads and deletions are not, no acknowledged write is lost, and writes are
// accepted when there is space again.
func TestAFullDiskEndsNothing(t *testing.T) {
	const reserve = 64 << 20
	dir := smallDisk(t, 400<<20)
	config := Config{Dir: dir, Log: slog.New(slog.DiscardHandler), ReserveBytes: reserve}
	s, err := Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	value := string(bytes.Repeat([]byte("x"), 100<<10))
	acknowledged := 0
	put := func() error {
		// A transaction that puts or reads, like the store's.
		key := fmt.Sprint("key", acknowledged)
		_, err := s.Client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Else(clientv3.OpGet(key)).Commit()
		if err == nil {
			acknowledged++
		}
		return err
	}
	for range 20 {
		if err := put(); err != nil {
			t.Fatal(err)
		}
	}
	free, err := s.disk.Free()
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, free-reserve-8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var full *etcd.NoSpace
	for err = nil; err == nil; err = put() {
		if acknowledged > 1000 {
			t.Fatal("the disk does not fill up")
		}
	}
	if !errors.As(err, &full) {
		t.Fatalf("the refusal is %v", err)
	}
	if err := s.Full(); !errors.As(err, &full) {
		t.Errorf("the member says %v", err)
	}
	if left, err := s.disk.Free(); err != nil || left < reserve/2 {
		t.Errorf("%d of the reserve of %d bytes are left, %v", left, reserve, err)
	}
	if got, err := s.Client.Get(ctx, "key0"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("reading: %v", err)
	}
	if _, err := s.Client.Delete(ctx, "key0"); err != nil {
		t.Errorf("deleting: %v", err)
	}
	// Then the disk is completely full: no write must reach etcd.
	fill := func(name string, leave int64) {
		t.Helper()
		left, err := s.disk.Free()
		if err == nil {
			err = os.WriteFile(ballast+name, make([]byte, left-leave), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fill("2", reserve/4)
	s.etcd.Server.Backend().ForceCommit() // as etcd does ten times a second
	fill("3", 0)
	_, err = s.Client.Delete(ctx, "key1")
	if !errors.As(err, &full) {
		t.Errorf("deleting on a disk without a byte: %v", err)
	}
	if got, err := s.Client.Get(ctx, "key1"); err != nil || len(got.Kvs) != 1 {
		t.Errorf("reading: %v", err)
	}
	if err := errors.Join(os.Remove(ballast), os.Remove(ballast+"2"), os.Remove(ballast+"3")); err != nil {
		t.Fatal(err)
	}
	for err = put(); err != nil; err = put() {
		if !errors.As(err, &full) || ctx.Err() != nil {
			t.Fatalf("writing when there is room again: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s, err = Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Client.Get(ctx, "key", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != int64(acknowledged-1) {
		t.Errorf("%d keys are there, %v; want %d", got.Count, err, acknowledged-1)
	}
}
