package embedded

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

const (
	// socketName is the Unix socket in etcd's directory on which a running member gives
	// snapshots. The directory and the socket are open to the user of the process alone,
	// who can read the database anyway.
	socketName = "snapshot.sock"
	// snapshotStall is how long a reader may accept nothing: the database cannot be
	// defragmented, and does not reuse its pages, while a snapshot is read.
	snapshotStall = 30 * time.Second
)

// ErrNotRunning is the error of Snapshot for a data directory that no process serves.
var ErrNotRunning = errors.New("no process serves this data directory")

// Snapshot asks the process that serves a data directory for etcd's database as it is
// now, and writes it to w in the format of etcd's own snapshots: the file, and its
// SHA-256 after it. ErrNotRunning if there is no such process.
func Snapshot(ctx context.Context, dataDir string, w io.Writer) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (conn net.Conn, err error) {
		pathError := atSocket(filepath.Join(dataDir, "etcd"), func(path string) error {
			conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
			return err
		})
		return conn, pathError
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://etcd/snapshot", nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	var unreachable *net.OpError
	if errors.Is(err, os.ErrNotExist) || errors.As(err, &unreachable) && unreachable.Op == "dial" {
		return fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return fmt.Errorf("%s: %s", answer.Status, said)
	}
	_, err = io.Copy(w, answer.Body)
	return err
}

// serveSnapshots answers Snapshot until the returned function is called. Only one snapshot is
// read at a time.
func (s *Server) serveSnapshots() (stop func() error, err error) {
	dir := s.disk.dir
	var listener net.Listener
	err = atSocket(dir, func(path string) error {
		// The directory is locked: a socket that is there is of a process that has crashed.
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if listener, err = net.Listen("unix", path); err != nil {
			return err
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false) // it may be known by another path
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		if listener != nil {
			_ = listener.Close()
		}
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(s.answerSnapshot), ReadHeaderTimeout: snapshotStall}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	return func() error {
		err := server.Close()
		<-served
		return errors.Join(err, os.Remove(filepath.Join(dir, socketName)))
	}, nil
}

func (s *Server) answerSnapshot(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet || r.URL.Path != "/snapshot" {
		http.NotFound(w, r)
		return
	}
	if !s.reading.TryLock() {
		http.Error(w, "another snapshot is being read", http.StatusConflict)
		return
	}
	defer s.reading.Unlock()
	snapshot := s.etcd.Server.Backend().Snapshot()
	defer snapshot.Close()
	w.Header().Set("Content-Length", strconv.FormatInt(snapshot.Size()+sha256.Size, 10))
	to, hash := &steady{w: w, control: http.NewResponseController(w)}, sha256.New()
	_, err := snapshot.WriteTo(io.MultiWriter(to, hash))
	if err == nil {
		_, err = to.Write(hash.Sum(nil))
	}
	if err != nil {
		s.log.Warn("a snapshot was not read to its end", "error", err)
		panic(http.ErrAbortHandler) // the reader sees that it is not whole
	}
}

// steady writes for a reader that has to accept each part in time.
type steady struct {
	w       io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (s *steady) Write(p []byte) (n int, err error) {
	const part = 1 << 20
	for len(p) > 0 && err == nil {
		if err = s.control.SetWriteDeadline(time.Now().Add(snapshotStall)); err != nil {
			return n, err
		}
		var written int
		written, err = s.w.Write(p[:min(part, len(p))])
		n, p = n+written, p[written:]
	}
	return n, err
}

// atSocket calls use with a path of the socket in a directory. The addresses of sockets are
// short, about a hundred bytes: on Linux, the path is that of the opened directory.
func atSocket(dir string, use func(path string) error) error {
	if runtime.GOOS != "linux" {
		return use(filepath.Join(dir, socketName))
	}
	opened, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer opened.Close()
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", opened.Fd(), socketName))
}
