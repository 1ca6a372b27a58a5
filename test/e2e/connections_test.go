package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// startNode starts a node, and returns the flags by which a front door may connect to
// it: the node has a certificate of one authority, the front door of another.
func startNode(t *testing.T) (*fakeNode, []string) {
	t.Helper()
	issue := func(name string) peertls.Files {
		authority, err := peertls.NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		files, err := authority.Issue(t.TempDir(), name, "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	serving, client := issue("node"), issue("frontdoor")
	node, err := startFakeNode(serving, client.CA)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.stop)
	return node, []string{"--kubelet-client-certificate=" + client.Cert, "--kubelet-client-key=" + client.Key,
		"--kubelet-certificate-authority=" + serving.CA, "--connect-allow-cidrs=127.0.0.0/8"}
}

// TestConnections reaches a node with stock clients, through the suite in one process.
func TestConnections(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl")
	}
	node, flags := startNode(t)
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	a := startAllInOne(t, vocabulary.K8s(), append(flags, "--audit-log-path="+auditLog, longShutdown)...)
	s := testConnections(t, a.Cluster, node)
	t.Run("audit", func(t *testing.T) { s.audited(t, auditLog) })
	t.Run("drain", func(t *testing.T) { s.drained(t, a) })
}

// TestConnectionsOfProcesses does so through a front door that is a process of its own.
func TestConnectionsOfProcesses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds kubectl, builds and starts eleven processes")
	}
	node, flags := startNode(t)
	s := newSuite(t, vocabulary.K8s())
	for _, p := range programs() {
		if p.name == "frontdoor" {
			p.args = flags
		}
		s.start(t, p)
	}
	testConnections(t, s.connect(t, "frontdoor"), node)
}

// placed is a pod that runs on a node.
type placed struct {
	*cluster.Cluster
	k         *kubectl
	node      *fakeNode
	namespace string
}

// testConnections uses every way to the node.
func testConnections(t *testing.T, c *cluster.Cluster, node *fakeNode) *placed {
	s := &placed{Cluster: c, node: node, namespace: newNamespace(t, c.Client(t))}
	s.k = newKubectl(t, c).in(t, s.namespace)
	s.place(t, "n", "p", node.port)
	for name, way := range map[string]func(*testing.T){
		"logs": s.logs, "exec": s.exec, "attach": s.attach, "port-forward": s.portForward, "cp": s.copied, "proxy": s.proxied,
		"client-go": s.executors, "faults": s.faults, "withdrawn": s.withdrawn, "suite": s.suite,
	} {
		t.Run(name, way)
	}
	return s
}

// place makes a node at a port of this machine, and a pod that runs on it.
func (s *placed) place(t *testing.T, node, pod string, port int) {
	t.Helper()
	ok(t, s.Cluster, post("/api/v1/nodes", fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q},"status":{
		"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%d}}}}`, node, port)))
	eventually(t, "the pod is made", func() bool {
		return s.Ask(t, post("/api/v1/namespaces/"+s.namespace+"/pods", fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},
			"spec":{"nodeName":%q,"containers":[{"name":"main","image":"a:1","stdin":true,"ports":[{"containerPort":%d}]}]}}`, pod, node, port))).Code == http.StatusCreated
	})
	ok(t, s.Cluster, cluster.Request{Method: http.MethodPatch, Path: s.path(pod + "/status"), Type: "application/merge-patch+json",
		Body: `{"status":{"phase":"Running","podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}}`})
}

func (s *placed) path(rest string) string {
	return "/api/v1/namespaces/" + s.namespace + "/pods/" + rest
}

func (s *placed) logs(t *testing.T) {
	s.node.log("one")
	s.node.log("two")
	s.k.play(t,
		act{line: "logs p", want: []string{"one\ntwo\n"}},
		act{line: "logs p -c main --tail=1", want: []string{"two\n"}, not: []string{"one"}},
		act{line: "logs p -c other", code: 1, want: []string{"container other is not valid for pod p"}},
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := s.k.command(ctx, "logs -f p --tail=0")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the log is followed", func() bool {
		asked := s.node.requests()
		return strings.Contains(asked[len(asked)-1].URL.RawQuery, "follow=true")
	})
	lines := bufio.NewReader(out)
	for _, want := range []string{"three", "four"} {
		s.node.log(want)
		if line, err := lines.ReadString('\n'); line != want+"\n" {
			t.Fatalf("got %q, %v, want %q", line, err, want)
		}
	}
	cancel()
	_ = command.Wait()
}

func (s *placed) exec(t *testing.T) {
	s.k.play(t,
		act{line: "exec p -- echo hello", want: []string{"hello\n"}},
		act{line: "exec -i p -- cat", input: "from the client", want: []string{"from the client"}},
		act{line: "exec p -- ls /nowhere", code: 2, want: []string{"/nowhere", "command terminated with exit code 2"}},
		act{line: "exec p -c other -- ls", code: 1, want: []string{"other"}},
	)
	s.k.with("KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false").play(t, act{line: "exec -i p -- cat", input: "over SPDY", want: []string{"over SPDY"}})
	large := strings.Repeat("0123456789abcdef", 1<<18)
	if out, code := s.k.try(t, "exec -i p -- cat", large); code != 0 || out != large {
		t.Errorf("%d bytes of %d came back, exit code %d", len(out), len(large), code)
	}
}

func (s *placed) attach(t *testing.T) {
	s.k.play(t, act{line: "attach -i p", input: "to the container", want: []string{"attached to main", "to the container"}})
}

func (s *placed) portForward(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))
	defer backend.Close()
	_, port, err := net.SplitHostPort(backend.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	command := s.k.command(ctx, "port-forward --address=127.0.0.1 pod/p :"+port)
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = command.Wait()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	var local int
	if _, err := fmt.Sscanf(line, "Forwarding from 127.0.0.1:%d", &local); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	for i := range 5 {
		sent := strings.Repeat(fmt.Sprint(i), 100_000)
		response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/", local), "text/plain", strings.NewReader(sent))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || string(got) != sent {
			t.Errorf("%d bytes of %d came back, %v", len(got), len(sent), err)
		}
	}
}

func (s *placed) copied(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	content := strings.Repeat("content\n", 50_000)
	if err := os.WriteFile(filepath.Join(here, "a"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	s.k.play(t, act{line: "cp " + filepath.Join(here, "a") + " p:" + filepath.Join(there, "b")},
		act{line: "cp p:" + filepath.Join(there, "b") + " " + filepath.Join(here, "c")})
	for _, file := range []string{filepath.Join(there, "b"), filepath.Join(here, "c")} {
		if got, err := os.ReadFile(file); err != nil || string(got) != content {
			t.Errorf("%s: %d bytes of %d, %v", file, len(got), len(content), err)
		}
	}
}

func (s *placed) proxied(t *testing.T) {
	s.k.play(t,
		act{line: "get --raw /api/v1/nodes/n/proxy/stats/summary?a=b", want: []string{"GET /stats/summary?a=b"}},
		act{line: fmt.Sprintf("get --raw /api/v1/nodes/n:%d/proxy/x", s.node.port), want: []string{"GET /x"}},
		act{line: "get --raw /api/v1/nodes/none/proxy/", code: 1, want: []string{`nodes "none" not found`}},
	)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %d %s", r.Method, r.URL.RequestURI(), len(body), r.Header.Get("Authorization"))
	}))
	defer backend.Close()
	_, port, err := net.SplitHostPort(backend.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pods/p:" + port + "/proxy/a/b?c=d", "pods/http:p:" + port + "/proxy/a/b?c=d"} {
		large := bytes.Repeat([]byte("x"), 8<<20)
		answer := s.Ask(t, cluster.Request{Method: http.MethodPut, Path: "/api/v1/namespaces/" + s.namespace + "/" + path, Type: "text/plain", Body: string(large)})
		if want := fmt.Sprintf("PUT /a/b?c=d %d ", len(large)); answer.Code != http.StatusOK || answer.Body != want {
			t.Errorf("%s: got %d %.200s, want %s", path, answer.Code, answer.Body, want)
		}
	}
}

// executors runs a command with both executors of client-go.
func (s *placed) executors(t *testing.T) {
	config := s.Config()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("p").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"sh", "-c", "cat; echo failed >&2; exit 3"}, Stdin: true, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
	if err != nil {
		t.Fatal(err)
	}
	webSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		t.Fatal(err)
	}
	for name, executor := range map[string]remotecommand.Executor{"SPDY": spdy, "WebSocket": webSocket} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("input"), Stdout: &out, Stderr: &errs})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "exit code 3") || out.String() != "input" || errs.String() != "failed\n" {
			t.Errorf("%s: got %v, %q, %q", name, err, out.String(), errs.String())
		}
	}
	s.fourthProtocol(t, client)
}

// fourthProtocol runs a command over the WebSocket protocol that nodes speak themselves,
// which cannot end the input.
func (s *placed) fourthProtocol(t *testing.T, client *kubernetes.Clientset) {
	at := client.CoreV1().RESTClient().Get().Resource("pods").Namespace(s.namespace).Name("p").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: []string{"sh", "-c", "echo done; exit 4"}, Stdout: true}, scheme.ParameterCodec).URL()
	executor, err := remotecommand.NewWebSocketExecutorForProtocols(s.Config(), http.MethodGet, at.String(), "v4.channel.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out}); err == nil || !strings.Contains(err.Error(), "exit code 4") || out.String() != "done\n" {
		t.Errorf("WebSocket v4: got %v, %q", err, out.String())
	}
}

// faults are nodes that are away, or not who they should be.
func (s *placed) faults(t *testing.T) {
	other, _ := startNode(t) // which trusts another authority, and has a certificate of another one
	s.place(t, "impostor", "with-impostor", other.port)
	away, _ := startNode(t)
	away.stop()
	s.place(t, "away", "with-away", away.port)
	s.k.play(t,
		act{line: "logs with-away", code: 1, want: []string{"Error from server", "connection refused"}},
		act{line: "exec with-away -- ls", code: 1, want: []string{"error dialing backend", "connection refused"}},
		act{line: "get --raw /api/v1/nodes/away/proxy/", code: 1, want: []string{"error trying to reach service", "connection refused"}},
		act{line: "logs with-impostor", code: 1, want: []string{"certificate signed by unknown authority"}},
		act{line: "exec with-impostor -- ls", code: 1, want: []string{"certificate signed by unknown authority"}},
		act{line: "logs with-impostor --insecure-skip-tls-verify-backend", code: 1, want: []string{"tls: "}}, // which the node refuses
	)
	if answer := s.Ask(t, cluster.Request{Path: "/api/v1/nodes/n/proxy/redirect"}); !strings.Contains(answer.Body, "GET /metadata") {
		t.Errorf("a redirect that the client follows through the proxy: got %d %s", answer.Code, answer.Body)
	}
}

// suite: a node that names the port of the front door itself, at an address of its machine, is not reached.
func (s *placed) suite(t *testing.T) {
	at, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	s.place(t, "itself", "with-itself", port)
	for _, path := range []string{"/api/v1/nodes/itself/proxy/api", s.path("with-itself:" + at.Port() + "/proxy/api"), s.path("https:with-itself:" + at.Port() + "/proxy/api"), s.path("with-itself/log")} {
		if answer := s.Ask(t, cluster.Request{Path: path}); answer.Code < 500 || !strings.Contains(answer.Body, "is a port of the suite") {
			t.Errorf("%s: %d %s", path, answer.Code, answer.Body)
		}
	}
}

// audited finds the lines of connections: one when they begin and one when they end.
func (s *placed) audited(t *testing.T, file string) {
	log, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ResponseStarted", "ResponseComplete"} {
		found := false
		for line := range strings.SplitSeq(string(log), "\n") {
			found = found || strings.Contains(line, `"stage":"`+want+`"`) && strings.Contains(line, `"subresource":"exec"`) && strings.Contains(line, `"code":101`)
		}
		if !found {
			t.Errorf("no line %s of an exec with status 101", want)
		}
	}
}

// drained stops the process while connections are open: they end at once, a log as if it
// were complete.
func (s *placed) drained(t *testing.T, a *allInOne) {
	followed, err := a.Send(t.Context(), cluster.Request{Path: s.path("p/log?follow=true")})
	if err != nil {
		t.Fatal(err)
	}
	defer followed.Body.Close()
	attached := s.k.command(t.Context(), "exec -i p -- cat")
	in, err := attached.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := attached.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := attached.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(in, "hello\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "hello\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	if metrics := a.Ask(t, cluster.Request{Path: "/metrics"}).Body; !strings.Contains(metrics, `apiserver_current_inflight_requests{request_kind="connect"} 2`) {
		t.Errorf("no two connections in\n%s", metrics)
	}
	began := time.Now()
	a.process.stop(t)
	if took := time.Since(began); took > drained || a.process.cmd.ProcessState.ExitCode() != 0 {
		t.Errorf("it took %v to end with %s", took, a.process.tail())
	}
	if _, err := io.ReadAll(followed.Body); err != nil {
		t.Errorf("the log ended with %v", err)
	}
	_ = in.Close()
	if err := attached.Wait(); err == nil {
		t.Error("kubectl exec reports success, though its connection was closed")
	}
}
