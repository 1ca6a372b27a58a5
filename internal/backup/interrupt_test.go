package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestMain runs the command itself in a process that asProcess has started.
func TestMain(m *testing.M) {
	if os.Getenv("PORTICO_TEST_COMMAND") != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// asProcess runs a command line as a process of its own.
func asProcess(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	var said bytes.Buffer
	command := exec.Command(os.Args[0], args...)
	command.Env = append(os.Environ(), "PORTICO_TEST_COMMAND=1")
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	return command, &said
}

// ending is a context that ends when it has been asked so many times whether it has.
type ending struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

func endingAfter(t *testing.T, times int64) *ending {
	e := &ending{}
	e.Context, e.end = context.WithCancel(t.Context())
	t.Cleanup(e.end)
	e.left.Store(times)
	return e
}

// Err implements context.Context.
func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		e.end()
	}
	return e.Context.Err()
}

// TestInterruption ends each command at each point where it looks: it says so and leaves nothing.
func TestInterruption(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	defer mustClose(t, server)
	good := filepath.Join(t.TempDir(), "backup")
	mustRun(t, "backup", "create", good, "--data-dir="+dir)
	into := t.TempDir()
	for name, args := range map[string][]string{
		"create":  {"backup", "create", filepath.Join(into, "new"), "--data-dir=" + dir},
		"verify":  {"backup", "verify", good},
		"restore": {"restore", good, "--data-dir=" + filepath.Join(into, "data")},
		"members": {"restore", good, "--etcd-data-dir=" + filepath.Join(into, "members"), "--initial-cluster=a=http://127.0.0.1:1,b=http://127.0.0.1:2"},
	} {
		points := int64(0)
		for ; ; points++ {
			err := command(endingAfter(t, points), args, streams{io.Discard, io.Discard})
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "interrupted") && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, point %d: %v", name, points, err)
			}
			if left, err := os.ReadDir(into); err != nil || len(left) > 0 {
				t.Fatalf("%s, point %d: left %v, %v", name, points, left, err)
			}
		}
		if points < 10 {
			t.Errorf("%s looks %d times whether it is interrupted", name, points)
		}
		entries, _ := os.ReadDir(into)
		for _, made := range entries {
			_ = os.RemoveAll(filepath.Join(into, made.Name()))
		}
	}
}

// TestEachReadIsInterrupted: everything that reads a whole snapshot ends with its context.
func TestEachReadIsInterrupted(t *testing.T) {
	dir, server := dataFolder(t)
	fill(t, server.Client)
	mustClose(t, server)
	folder := filepath.Join(t.TempDir(), "backup")
	mustRun(t, "backup", "create", folder, "--data-dir="+dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(folder, snapshotFile)
	for name, read := range map[string]func() error{
		"hashFile": func() error { _, err := hashFile(ctx, path, nil); return err },
		"checkSum": func() error { return checkSum(ctx, path, nil) },
		"inspect":  func() error { _, err := inspect(ctx, path, nil); return err },
	} {
		if err := read(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStepWithoutContext: one that goes on is left behind, with what it fills removed; one that panics is an error.
func TestStepWithoutContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	goOn, undone := make(chan struct{}), false
	defer close(goOn)
	began := time.Now()
	err := uninterruptible(ctx, func() error { cancel(); <-goOn; return nil }, func() { undone = true })
	if !undone || !errors.Is(err, context.Canceled) || time.Since(began) > 10*stopWait {
		t.Errorf("after %v: undone %v, %v", time.Since(began), undone, err)
	}
	if err := uninterruptible(t.Context(), func() error { panic("damaged") }, nil); err == nil || err.Error() != "damaged" {
		t.Errorf("a panic: %v", err)
	}
}

// silent is the address of a server that accepts connections and answers nothing.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// unfinished waits for the temporary folder of a process and returns its path.
func unfinished(t *testing.T, parent string) string {
	t.Helper()
	var found []string
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		found, _ = filepath.Glob(filepath.Join(parent, ".*", lockName))
		return len(found) > 0, nil
	}); err != nil {
		t.Fatal("the process makes no temporary folder")
	}
	return filepath.Dir(found[0])
}

// TestSignals: a process that is asked to end leaves nothing, and what one that is killed has left is
// removed by the next one, of another name.
func TestSignals(t *testing.T) {
	parent := t.TempDir()
	args := []string{"backup", "create", filepath.Join(parent, "monday"), "--etcd-servers=http://" + strings.Join([]string{silent(t), silent(t), silent(t), silent(t)}, ",http://")}
	process, said := asProcess(t, args...)
	unfinished(t, parent)
	began := time.Now()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	if took := time.Since(began); process.ProcessState.ExitCode() != 1 || took > 2*memberTimeout {
		t.Errorf("status %d after %v: %s", process.ProcessState.ExitCode(), took, said)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}

	process, _ = asProcess(t, args...)
	left := unfinished(t, parent)
	dir, server := dataFolder(t)
	defer mustClose(t, server)
	if said := mustRun(t, "backup", "create", filepath.Join(parent, "tuesday"), "--data-dir="+dir); strings.Contains(said, left) {
		t.Errorf("while it runs: %s", said)
	}
	if _, err := os.Stat(left); err != nil {
		t.Fatalf("the folder of a running process: %v", err)
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = process.Wait()
	if said := mustRun(t, "backup", "create", filepath.Join(parent, "wednesday"), "--data-dir="+dir); !strings.Contains(said, "removed "+left) {
		t.Errorf("after it was killed: %s", said)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left %s: %v", left, err)
	}
}

// TestLeftovers: only folders with a lock that nobody holds are removed, and nothing through links.
func TestLeftovers(t *testing.T) {
	parent, elsewhere := t.TempDir(), t.TempDir()
	file := func(path ...string) string {
		t.Helper()
		name := filepath.Join(path...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file(parent, ".old-1", lockName)
	held, err := fileutil.TryLockFile(file(parent, ".new-2", lockName), os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	file(parent, ".new-3", "etcd.db")
	file(parent, ".notes-4", "etcd.db")
	file(parent, ".new-old", lockName)
	file(elsewhere, lockName)
	file(parent, ".new-6", "etcd.db")
	if err := errors.Join(os.Symlink(elsewhere, filepath.Join(parent, ".new-5")), os.Symlink(filepath.Join(elsewhere, lockName), filepath.Join(parent, ".new-6", lockName))); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	clearLeftovers(filepath.Join(parent, "new"), &said)
	for name, want := range map[string]string{".old-1": "removed ", ".new-2": "", ".new-3": "may be left", ".notes-4": "", ".new-old": "", ".new-5": "", ".new-6": "may be left"} {
		_, err := os.Lstat(filepath.Join(parent, name))
		if gone := errors.Is(err, os.ErrNotExist); gone != (want == "removed ") {
			t.Errorf("%s: gone %v", name, gone)
		}
		line := ""
		for _, one := range strings.Split(said.String(), "\n") {
			if strings.Contains(one, name+" ") || strings.Contains(one, name+",") {
				line = one
			}
		}
		if (line == "") != (want == "") || !strings.Contains(line, want) {
			t.Errorf("%s: said %q, want %q", name, line, want)
		}
	}
	if _, err := os.Stat(filepath.Join(elsewhere, lockName)); err != nil {
		t.Errorf("what a link leads to: %v", err)
	}
}
