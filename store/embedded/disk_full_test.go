package embedded

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskAtTheFirstStart: a disk without space for etcd's files is an error that says so, and no panic.
func TestFullDiskAtTheFirstStart(t *testing.T) {
	dir := filepath.Join(t.TempDir())
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("the test needs the right to mount a small disk:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s, err := Open(t.Context(), Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		_ = s.Close()
		t.Fatal("the member has started")
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "starting etcd in "+dir) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error is %v", err)
	}
}
