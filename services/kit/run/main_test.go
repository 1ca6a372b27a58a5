package run_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/portico-platform/portico/services/kit/run"
)

// asProcess makes the test binary run an app instead of the tests.
const asProcess = "PORTICO_TEST_AS_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		var d diary
		run.Main(app(d.noted("a")))
	}
	os.Exit(m.Run())
}

func process(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asProcess+"=1")
	return c
}

func TestASignalEndsTheProcessWell(t *testing.T) {
	c := process()
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var log []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		log = append(log, lines.Text())
		if strings.Contains(lines.Text(), "test: started") {
			_ = c.Process.Signal(syscall.SIGTERM)
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("got %v", err)
	}
	if len(log) != 3 || !strings.Contains(log[1], "test: stopping") || !strings.Contains(log[2], "test: stopped") {
		t.Errorf("got log\n%s", strings.Join(log, "\n"))
	}
}

func TestAWrongCallEndsWithOneLine(t *testing.T) {
	c := process("--unheard-of")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	_ = c.Run()
	if got := c.ProcessState.ExitCode(); got != 2 {
		t.Errorf("got exit status %d", got)
	}
	if got, want := stderr.String(), "test: unknown flag: --unheard-of (see test --help)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCheckHealth checks the health of a process with --check-health, as an image without
// a shell does.
func TestCheckHealth(t *testing.T) {
	var sick atomic.Bool
	patient := run.Service{Name: "patient", Start: func(_ context.Context, n *run.Node) error {
		n.Health.Add(run.Check{Name: "sick", Probe: func(context.Context) error {
			if sick.Load() {
				return errors.New("sick")
			}
			return nil
		}})
		return nil
	}}
	running := start(t, app(patient), "--status-address=127.0.0.1:0")
	check := func() (code int, output string) {
		c := process("--check-health=" + running.StatusAddress())
		var stderr bytes.Buffer
		c.Stderr = &stderr
		_ = c.Run()
		return c.ProcessState.ExitCode(), stderr.String()
	}
	if code, output := check(); code != 0 {
		t.Errorf("of a ready process: %d %s", code, output)
	}
	sick.Store(true)
	if code, output := check(); code != 1 || !strings.Contains(output, "not ready: 500") {
		t.Errorf("of a process that is not ready: %d %s", code, output)
	}
	address := running.StatusAddress()
	running.Stop()
	c := process("--check-health=" + address)
	if err := c.Run(); c.ProcessState.ExitCode() != 1 {
		t.Errorf("of a stopped process: %v", err)
	}
}
