package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// behaviours configure what the containers of all pods do on the nodes: their log is a file, commands
// run on this machine, and their port 7000 is that of a server of the test.
const behaviours = `
- {apiVersion: kwok.x-k8s.io/v1alpha1, kind: ClusterLogs, metadata: {name: all}, spec: {logs: [{logsFile: LOG, follow: true}]}}
- {apiVersion: kwok.x-k8s.io/v1alpha1, kind: ClusterAttach, metadata: {name: all}, spec: {attaches: [{logsFile: LOG}]}}
- {apiVersion: kwok.x-k8s.io/v1alpha1, kind: ClusterExec, metadata: {name: all}, spec: {execs: [{local: {workDir: DIR, envs: [{name: WHERE, value: node}]}}]}}
- {apiVersion: kwok.x-k8s.io/v1alpha1, kind: ClusterPortForward, metadata: {name: all}, spec: {forwards: [{ports: [7000], target: {address: 127.0.0.1, port: PORT}}]}}
`

// streams is what the streams of one test go to.
type streams struct {
	*site
	pod string // the one that streams go to
	log string // the log of all containers
}

// testStreams uses kwok's node server through Portico, with kubectl: over WebSocket, which
// Portico translates, and over SPDY.
func (s *site) testStreams(t *testing.T) {
	pods, err := s.pods(t.Context())
	if err != nil || len(pods) == 0 {
		t.Fatalf("%d pods, %v", len(pods), err)
	}
	x := &streams{site: s, pod: pods[0].Name, log: filepath.Join(t.TempDir(), "log")}
	x.write(t, "first", "second", "third")
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.MultiReader(strings.NewReader(r.URL.Path+": "), r.Body))
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	x.configure(t, strings.NewReplacer("LOG", x.log, "DIR", filepath.Dir(x.log), "PORT", port).Replace(behaviours))

	eventually(t, "the nodes know the log", func() error {
		out, err := x.kubectl(t.Context(), "logs", x.pod)
		if err == nil && out == "" {
			err = errors.New("it is empty")
		}
		return err
	})
	t.Run("logs", x.testLogs)
	t.Run("follow", x.testFollow)
	for protocol, websocket := range map[string]string{"WebSocket": "true", "SPDY": "false"} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", websocket)
			t.Setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", websocket)
			t.Run("exec", x.testExec)
			t.Run("terminal", x.testTerminal)
			t.Run("attach", x.testAttach)
			t.Run("port-forward", x.testPortForward)
		})
	}
}

// configure creates kwok's objects.
func (s *site) configure(t *testing.T, text string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.client.Discovery()))
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(text), &objects); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		o := &unstructured.Unstructured{Object: object}
		mapping, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resource(mapping.Resource).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// write appends lines to the log, in the format of container runtimes.
func (x *streams) write(t *testing.T, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(x.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(f, "%s stdout F %s\n", time.Now().UTC().Format(time.RFC3339Nano), line); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func (s *site) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.command(ctx, s.kubectlPath, append([]string{"--namespace", namespace}, args...)...)
}

// begin starts kubectl, which is killed when the test ends.
func (s *site) begin(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, s.kubectlPath, append([]string{"--namespace", namespace}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "HOME="+s.dir)
	t.Cleanup(func() {
		if command.Process != nil && command.ProcessState == nil {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	})
	return command
}

func (x *streams) testLogs(t *testing.T) {
	for want, args := range map[string][]string{
		"first\nsecond\nthird\n": nil,
		"third\n":                {"--tail=1"},
		"first\n":                {"--limit-bytes=6"},
		"":                       {"--since-time=2999-01-01T00:00:00Z"},
	} {
		if out, err := x.kubectl(t.Context(), append([]string{"logs", x.pod}, args...)...); err != nil || out != want {
			t.Errorf("logs %q: %q, %v, want %q", args, out, err, want)
		}
	}
	if out, err := x.kubectl(t.Context(), "logs", x.pod, "-c", "none"); err == nil || !strings.Contains(out, "container none is not valid for pod") {
		t.Errorf("logs of no container: %q, %v", out, err)
	}
}

// testFollow follows a log while it grows, and ends.
func (x *streams) testFollow(t *testing.T) {
	command := x.begin(t, "logs", "-f", "--tail=1", x.pod)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"third", "fourth", "fifth"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("read %q, %v, want %q", lines.Text(), lines.Err(), want)
		}
		if next := map[string]string{"third": "fourth", "fourth": "fifth"}[want]; next != "" {
			x.write(t, next)
		}
	}
}

// testExec runs commands with both kinds of output, one that fails, and one with input.
func (x *streams) testExec(t *testing.T) {
	if out, err := x.kubectl(t.Context(), "exec", x.pod, "--", "sh", "-c", "echo $WHERE; pwd"); err != nil || out != "node\n"+filepath.Dir(x.log)+"\n" {
		t.Errorf("%q, %v", out, err)
	}
	// kwok answers an internal error with the status in its text, and no exit code.
	if out, err := x.kubectl(t.Context(), "exec", x.pod, "--", "sh", "-c", "echo bad >&2; exit 7"); err == nil || !strings.HasPrefix(out, "bad\n") || !strings.Contains(out, "exit status 7") {
		t.Errorf("a command that fails: %q, %v", out, err)
	}
	// kwok does not close the input of commands, so this one must know where it ends.
	command := x.begin(t, "exec", "-i", x.pod, "--", "sh", "-c", fmt.Sprintf("head -c %d | wc -c", 3<<20))
	command.Stdin = bytes.NewReader(make([]byte, 3<<20))
	if out, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(3<<20) {
		t.Errorf("3 MiB of input: %q, %v", out, err)
	}
}

// testTerminal runs a shell with a terminal, as in kubectl exec -it, and changes its size.
func (x *streams) testTerminal(t *testing.T) {
	command := x.begin(t, "exec", "-it", x.pod, "--", "sh")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Rows: 30, Cols: 101})
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	output := make(chan string, 1)
	await := func(want string) {
		t.Helper()
		deadline := time.After(patience)
		for said := ""; !strings.Contains(said, want); {
			select {
			case more, ok := <-output:
				if said += more; !ok {
					t.Fatalf("the shell ended after %q, want %q", said, want)
				}
			case <-deadline:
				t.Fatalf("the shell said %q, want %q", said, want)
			}
		}
	}
	go func() {
		defer close(output)
		buffer := make([]byte, 4096)
		for {
			n, err := terminal.Read(buffer)
			if n > 0 {
				output <- string(buffer[:n])
			}
			if err != nil {
				return
			}
		}
	}()
	say := func(line string) {
		t.Helper()
		if _, err := io.WriteString(terminal, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	say("echo size=$(stty size)")
	await("size=30 101")
	if err := pty.Setsize(terminal, &pty.Winsize{Rows: 40, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	say("until test \"$(stty size)\" = '40 77'; do sleep 0.1; done; echo changed=$((1+1))")
	await("changed=2")
	say("exit")
	for range output {
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the shell ended with %v", err)
	}
}

// testAttach reads what the container writes while the client is attached.
func (x *streams) testAttach(t *testing.T) {
	command := x.begin(t, "attach", x.pod)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		lines.Scan()
		read <- lines.Text()
	}()
	// What is written before the client is attached does not arrive.
	ticks, deadline := time.NewTicker(200*time.Millisecond), time.After(patience)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			x.write(t, "attached")
		case line := <-read:
			if line != "attached" {
				t.Errorf("read %q", line)
			}
			return
		case <-deadline:
			t.Fatal("nothing arrives")
		}
	}
}

// testPortForward sends requests through a forwarded port: one after the other, at the same
// time, and a large one.
func (x *streams) testPortForward(t *testing.T) {
	command := x.begin(t, "port-forward", x.pod, ":7000")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("kubectl printed nothing")
	}
	_, rest, _ := strings.Cut(lines.Text(), "Forwarding from ")
	address, _, ok := strings.Cut(rest, " ->")
	if !ok {
		t.Fatalf("kubectl printed %q", lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	defer client.CloseIdleConnections()
	ask := func(path string, size int) error {
		body := bytes.Repeat([]byte("x"), size)
		response, err := client.Post("http://"+address+path, "text/plain", bytes.NewReader(body))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if want := path + ": " + string(body); err == nil && string(content) != want {
			err = fmt.Errorf("%d bytes came back, want %d", len(content), len(want))
		}
		return err
	}
	if err := errors.Join(ask("/one", 10), ask("/two", 4<<20)); err != nil {
		t.Error(err)
	}
	failures := make(chan error)
	for n := range 8 {
		go func() { failures <- ask(fmt.Sprintf("/%d", n), 100_000) }()
	}
	for range 8 {
		if err := <-failures; err != nil {
			t.Error(err)
		}
	}
}
