package run_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
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
	if got, want := stderr.String(), "test: unknown flag: --unheard-of (test --help tells more)\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
