package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/kit/run"
)

// small mounts a disk of a size for a data folder.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("the test needs the right to mount a small disk:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// TestFirstStartWithoutSpace: a first start on a full disk ends with a sentence.
func TestFirstStartWithoutSpace(t *testing.T) {
	for size, service := range map[string]string{"16k": "home: ", "256k": "etcd: "} { // too small for certificates, and for etcd
		args := []string{"--data-dir=" + small(t, size), "--secure-port=0", "--log-level=error"}
		running, err := run.Start(t.Context(), app(args), args)
		if err == nil {
			running.Stop()
			t.Fatalf("%s: it has started", size)
		}
		if text := err.Error(); !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(text, service) || strings.Contains(text, "\n") {
			t.Errorf("%s: %v", size, err)
		}
	}
}

// TestFirstStartInTheReserve: a first start on a disk that has less space than is kept in reserve waits for space, and the
// status address answers meanwhile.
func TestFirstStartInTheReserve(t *testing.T) {
	status, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--data-dir=" + small(t, "144m"), "--secure-port=0", "--log-level=error", "--status-address=" + status}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error)
	go func() {
		running, err := run.Start(ctx, app(args), args)
		if err == nil {
			running.Stop()
		}
		ended <- err
	}()
	code := func(path string) int {
		response, err := http.Get("http://" + status + path)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	for end := time.Now().Add(30 * time.Second); code("/livez") != http.StatusOK; {
		if time.Now().After(end) {
			t.Fatal("the status address does not answer")
		}
	}
	if got := code("/readyz"); got == http.StatusOK {
		t.Error("the process is ready")
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("it has started")
	}
}
