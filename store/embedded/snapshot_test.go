package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSnapshot(t *testing.T) {
	// Longer than the address of a socket can be.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 30))
	if err := Snapshot(t.Context(), dir, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Fatalf("nothing runs: %v", err)
	}
	s := open(t, dir, slog.New(slog.DiscardHandler))
	if _, err := s.Client.Put(t.Context(), "k", "what was written last"); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "etcd", socketName)
	for path, want := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
	var snapshot bytes.Buffer
	if err := Snapshot(t.Context(), dir, &snapshot); err != nil {
		t.Fatal(err)
	}
	content := snapshot.Bytes()
	database, sum := content[:len(content)-sha256.Size], content[len(content)-sha256.Size:]
	if got := sha256.Sum256(database); !bytes.Equal(got[:], sum) || !bytes.Contains(database, []byte("what was written last")) {
		t.Errorf("%d bytes are no snapshot", len(content))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Snapshot(t.Context(), dir, io.Discard); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// slowReader takes the first bytes and waits.
type slowReader struct{ began, goOn chan struct{} }

func (r *slowReader) Write(p []byte) (int, error) {
	select {
	case <-r.began:
	default:
		close(r.began)
	}
	<-r.goOn
	return len(p), nil
}

// TestOneSnapshotAtATime lets a second reader come while one reads slowly, which also keeps
// the database from being defragmented; a reader that goes away leaves nothing behind, and
// neither does a process that was killed.
func TestOneSnapshotAtATime(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, slog.New(slog.DiscardHandler))
	for i := range 64 { // more than the buffers between hold
		if _, err := s.Client.Put(t.Context(), string(rune('a'+i)), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	reader, done := &slowReader{make(chan struct{}), make(chan struct{})}, make(chan error)
	go func() { done <- Snapshot(ctx, dir, reader) }()
	<-reader.began
	if err := Snapshot(t.Context(), dir, io.Discard); err == nil || !strings.Contains(err.Error(), "another snapshot is being read") {
		t.Errorf("a second reader: %v", err)
	}
	if err := (&space{server: s}).defragment(s.sizes()); err == nil || !strings.Contains(err.Error(), "while a snapshot is being read") {
		t.Errorf("defragmented: %v", err)
	}
	cancel()
	close(reader.goOn)
	if err := <-done; err == nil {
		t.Error("a snapshot that was cut short counts as whole")
	}
	func() { // waits until the reader that ended early has released it
		s.reading.Lock()
		defer s.reading.Unlock()
	}()
	if err := Snapshot(t.Context(), dir, io.Discard); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etcd", socketName), nil, 0o600); err != nil { // as left by kill -9
		t.Fatal(err)
	}
	s = open(t, dir, slog.New(slog.DiscardHandler))
	defer s.Close()
	if err := Snapshot(t.Context(), dir, io.Discard); err != nil {
		t.Error(err)
	}
}
