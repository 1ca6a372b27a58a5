package tools

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/internal/terminal"
	"github.com/portico-platform/portico/internal/tools/openwatches"
)

// watching opens a watch and returns a function that reports its end.
func watching(t *testing.T, c *kubernetes.Clientset) (ended func(timeout time.Duration) bool) {
	t.Helper()
	w, err := c.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{LabelSelector: "a=b"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return func(timeout time.Duration) bool {
		deadline := time.After(timeout)
		for {
			select {
			case _, open := <-w.ResultChan():
				if !open {
					return true
				}
			case <-deadline:
				return false
			}
		}
	}
}

// find returns the watch of the test.
func find(t *testing.T, c tool) openwatches.Watch {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		var list openwatches.List
		c.json(&list, "watches")
		for _, w := range list.Items {
			if w.LabelSelector == "a=b" {
				return w
			}
		}
	}
	t.Fatal("the watch is not listed")
	return openwatches.Watch{}
}

func TestWatches(t *testing.T) {
	t.Parallel()
	p, k, c := cluster(t)
	ended := watching(t, k)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen", Labels: map[string]string{"a": "b"}}}
	if _, err := k.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w := find(t, c)
	for deadline := time.Now().Add(20 * time.Second); w.Revision == 0 && time.Now().Before(deadline); {
		w = find(t, c)
	}
	if w.User != "admin" || w.Resource != "configmaps" || w.Namespace != "default" || w.Version != "v1" || w.FrontDoor == "" || w.Bytes == 0 || w.Revision == 0 || w.Client == "" {
		t.Errorf("%+v", w)
	}
	if r := c.run("watches"); r.code != 0 || !strings.Contains(r.out, w.ID) || !strings.Contains(r.out, "configmaps") {
		t.Errorf("%+v", r)
	}
	var text strings.Builder
	several := openwatches.List{Items: []openwatches.Watch{{ID: "b-1", FrontDoor: "b"}}, FrontDoors: []openwatches.FrontDoor{{Instance: "b", Host: "door-1"}, {Host: "door-2", Address: "10.0.0.2:6443", Error: "it does not respond"}}}
	if err := writeWatches(&text, several, time.Now()); err != nil || !strings.Contains(text.String(), "b-1  door-1") ||
		!strings.Contains(text.String(), "without the watches of front door door-2 10.0.0.2:6443: it does not respond") {
		t.Errorf("%s %v", &text, err)
	}
	if ended(0) {
		t.Fatal("the watch ended before it was closed")
	}
	if r := c.run("watches", "close", w.ID); r.code != 0 || !strings.Contains(r.out, "closed") {
		t.Errorf("%+v", r)
	}
	if !ended(20 * time.Second) {
		t.Error("the watch goes on")
	}
	for name, args := range map[string][]string{"1 closed already": {"watches", "close", w.ID}, "1 limit": {"watches", "--limit=0"}, "2 interval": {"top", "--interval=1ms"}} {
		if r := c.run(args...); strconv.Itoa(r.code) != name[:1] || r.stderr == "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	content, err := p.AddUser("alice", "staff").KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	alice := tool{t, file(t, content)}
	for _, args := range [][]string{{"watches"}, {"watches", "close", w.ID}, {"top", "--once"}} {
		if r := alice.run(args...); r.code != 1 || !strings.Contains(r.stderr, "/debug/portico/v1/") {
			t.Errorf("%v of a user without rights: %+v", args, r)
		}
	}
}

func TestTopOnce(t *testing.T) {
	t.Parallel()
	_, k, c := cluster(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = k.CoreV1().ConfigMaps("default").Get(ctx, "none", metav1.GetOptions{})
		}
	}()
	defer func() { stop(); <-done }()
	var r report
	c.json(&r, "top", "--interval=500ms")
	if len(r.Processes) != 1 || r.Processes[0].Memory == 0 || r.Processes[0].CPU == 0 || len(r.Lag) != 2 {
		t.Errorf("%+v", r)
	}
	found := false
	for _, line := range r.Requests {
		found = found || line.What == "get configmaps" && line.Rate > 0 && line.P50 > 0 && line.P99 >= line.P50
	}
	if !found {
		t.Errorf("no reads of configmaps in %+v", r.Requests)
	}
	if text := c.run("top", "--once", "--interval=100ms"); text.code != 0 || !strings.Contains(text.out, "PROCESS") || strings.Contains(text.out, "\x1b") {
		t.Errorf("%+v", text)
	}
}

// TestTopInATerminal records what top writes to a terminal: frames that fit, and at the end the
// screen and the settings from before.
func TestTopInATerminal(t *testing.T) {
	t.Parallel()
	_, _, c := cluster(t)
	user, program := terminal.Open(t)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	code := make(chan int, 1)
	var stderr strings.Builder
	go func() {
		code <- Main(t.Context(), []string{"--kubeconfig=" + c.config, "top", "--interval=100ms"}, program, &stderr)
	}()
	var recorded strings.Builder
	part := make([]byte, 64<<10)
	for pressed := false; !strings.Contains(recorded.String(), leaveScreen); {
		n, err := user.Read(part)
		if err != nil {
			t.Fatal(err, recorded.String(), stderr.String())
		}
		recorded.Write(part[:n])
		if !pressed && strings.Count(recorded.String(), clearBelow) >= 2 {
			pressed = true
			if _, err := user.WriteString("q"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := <-code; got != 0 || stderr.Len() > 0 {
		t.Errorf("exit status %d: %s", got, stderr.String())
	}
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the settings are %+v, were %+v: %v", after, before, err)
	}
	frames := strings.Split(strings.TrimPrefix(recorded.String(), enterScreen), home)
	if len(frames) < 3 || frames[0] != "" {
		t.Fatalf("%d frames: %q", len(frames), recorded.String())
	}
	for _, frame := range frames[1:] {
		lines := strings.Split(strings.TrimSuffix(strings.TrimSuffix(frame, leaveScreen), clearBelow), "\r\n")
		if len(lines) > 24 || !strings.HasPrefix(lines[0], "portico top - ") || !strings.Contains(frame, "in flight") {
			t.Errorf("%d lines in %q", len(lines), frame)
		}
		for _, line := range lines {
			if text := strings.TrimSuffix(line, clearLine); len([]rune(text)) > 100 || strings.ContainsRune(text, '\x1b') {
				t.Errorf("a line of %d characters: %q", len([]rune(text)), text)
			}
		}
	}
}
