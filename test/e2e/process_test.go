package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/portico-platform/portico/internal/loopback"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// root is the top of the workspace.
const root = "../.."

// builds has the programs that are built, so that each is built once for all tests.
var builds struct {
	sync.Mutex
	done map[string]error // by output and packages
}

// build makes programs with the flags of `make build`, in the same place, so that
// what is up to date is not linked again.
func build(dir, output string, env []string, packages ...string) error {
	key := strings.Join(append([]string{output}, packages...), " ")
	builds.Lock()
	defer builds.Unlock()
	err, ok := builds.done[key]
	if !ok {
		if builds.done == nil {
			builds.done = map[string]error{}
		}
		err = compile(dir, output, env, packages)
		builds.done[key] = err
	}
	return err
}

func compile(dir, output string, env, packages []string) error {
	absolute, err := filepath.Abs(output)
	if err != nil {
		return err
	}
	if strings.HasSuffix(output, "/") {
		absolute += "/" // a folder, also when it does not exist yet
	}
	command := exec.Command("go", append([]string{"build", "-trimpath", "-tags=grpcnotrace", "-o", absolute}, packages...)...)
	command.Dir = dir
	command.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %v: %w: %s", packages, err, out)
	}
	return nil
}

func portico(t *testing.T) string {
	t.Helper()
	if err := build(root, root+"/bin/", nil, "./cmd/portico"); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "bin", "portico")
}

// process is a program that a test has started.
type process struct {
	name   string
	cmd    *exec.Cmd
	output string // the file of its output
	ended  chan struct{}
	killed bool
}

// spawn starts a program, which ends with the test at the latest.
func spawn(t *testing.T, dir, program string, args ...string) *process {
	t.Helper()
	return spawnCommand(t, dir, exec.Command(program, args...))
}

func spawnCommand(t *testing.T, dir string, command *exec.Cmd) *process {
	t.Helper()
	p := &process{name: filepath.Base(command.Path), cmd: command, ended: make(chan struct{})}
	p.output = filepath.Join(dir, p.name+".log")
	out, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		_ = out.Close()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() && !p.killed {
			t.Logf("the last output of %s:\n%s", p.name, p.tail())
		}
	})
	return p
}

// stop sends SIGTERM to the process and waits for it.
func (p *process) stop(t *testing.T) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Errorf("%s did not end within %v of SIGTERM", p.name, patience)
		p.kill()
	}
}

// kill ends the process at once, as kill -9 does.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.ended
}

func (p *process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.log()), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// log returns the whole output.
func (p *process) log() string {
	content, _ := os.ReadFile(p.output)
	return string(content)
}

// await waits until the cluster is ready, or the process has ended.
func (p *process) await(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- c.Ready(ctx) }()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatal(err)
		}
	case <-p.ended:
		t.Fatalf("%s ended: %s", p.name, p.tail())
	}
}

// allInOne is the all-in-one as a process, with data and an address that stay
// the same over restarts.
type allInOne struct {
	*cluster.Cluster
	process *process
	address string
	// descriptors is the limit on open files of the process, if it is not 0.
	descriptors int
}

func startAllInOne(t *testing.T, v vocabulary.Vocabulary, args ...string) *allInOne {
	t.Helper()
	return startAllInOneIn(t, t.TempDir(), v, args...)
}

// startAllInOneIn starts it with its data in dir.
func startAllInOneIn(t *testing.T, dir string, v vocabulary.Vocabulary, args ...string) *allInOne {
	t.Helper()
	address, err := loopback.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	a := &allInOne{Cluster: &cluster.Cluster{Dir: dir, Vocabulary: v}, address: address}
	a.start(t, args...)
	return a
}

// start starts it, again if it has been killed, and waits until it is ready.
func (a *allInOne) start(t *testing.T, args ...string) {
	t.Helper()
	host, port, err := net.SplitHostPort(a.address)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(portico(t), append([]string{
		"--data-dir=" + a.Dir, "--bind-address=" + host, "--secure-port=" + port, "--vocabulary=" + a.Vocabulary.Name,
	}, args...)...)
	if a.descriptors > 0 {
		command = limited(a.descriptors, command)
	}
	a.process = spawnCommand(t, t.TempDir(), command)
	eventually(t, "the home is made", func() bool {
		c, connectError := cluster.Connect(a.Dir, a.address, a.Vocabulary)
		if err = connectError; err == nil {
			a.Cluster = c
		}
		return err == nil || a.process.hasEnded()
	})
	if err != nil {
		t.Fatalf("%s ended: %s", a.process.name, a.process.tail())
	}
	a.process.await(t, a.Cluster)
}

// limited returns a command whose process may open that many files.
func limited(descriptors int, command *exec.Cmd) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, descriptors)}, command.Args...)...)
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
