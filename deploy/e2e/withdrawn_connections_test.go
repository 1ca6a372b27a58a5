package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/portico-platform/portico/deploy/e2e/cluster"
)

// withdrawn takes the binding from a user who runs a command, over both protocols, and follows a
// log.
func (s *placed) withdrawn(t *testing.T) {
	group := s.Vocabulary.Group("rbac.authorization.")
	rbac := "/apis/" + group + "/v1/namespaces/" + s.namespace
	ok(t, s.Cluster, post(rbac+"/roles", `{"metadata":{"name":"carla"},"rules":[{"apiGroups":[""],"resources":["pods/exec","pods/log"],"verbs":["get","create"]}]}`))
	grant := func() {
		ok(t, s.Cluster, post(rbac+"/rolebindings", fmt.Sprintf(
			`{"metadata":{"name":"carla"},"roleRef":{"apiGroup":%q,"kind":"Role","name":"carla"},"subjects":[{"kind":"User","apiGroup":%q,"name":"carla"}]}`, group, group)))
	}
	config := s.Config()
	config.Impersonate.UserName = "carla"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	at := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("p").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"cat"}, Stdin: true, Stdout: true}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, at)
	if err != nil {
		t.Fatal(err)
	}
	webSocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		t.Fatal(err)
	}
	run := func(executor remotecommand.Executor) func(context.Context, io.Writer) error {
		return func(ctx context.Context, out io.Writer) error {
			in, keys := io.Pipe()
			defer in.Close()
			go func() { _, _ = keys.Write([]byte("open\n")) }() // fails when the command has ended
			return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out})
		}
	}
	follow := func(ctx context.Context, out io.Writer) error {
		lines, err := client.CoreV1().Pods(s.namespace).GetLogs("p", &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		if err != nil {
			return err
		}
		defer lines.Close()
		_, err = io.Copy(out, lines)
		return err
	}
	s.node.log("a line")
	for name, connect := range map[string]func(context.Context, io.Writer) error{"SPDY": run(spdy), "WebSocket": run(webSocket), "log": follow} {
		grant()
		s.ends(t, name, connect, func() {
			ok(t, s.Cluster, cluster.Request{Method: http.MethodDelete, Path: rbac + "/rolebindings/carla"})
		})
	}
}

// ends connects, withdraws the right to once something has arrived, and waits for the error.
func (s *placed) ends(t *testing.T, name string, connect func(context.Context, io.Writer) error, withdraw func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	arrived, end := io.Pipe()
	defer arrived.Close()
	ended := make(chan error, 1)
	go func() { ended <- connect(ctx, end) }()
	if _, err := io.ReadFull(arrived, make([]byte, 4)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	go func() { _, _ = io.Copy(io.Discard, arrived) }() // ends with the pipe
	withdraw()
	began := time.Now()
	select {
	case err := <-ended:
		t.Logf("%s: ended after %v: %v", name, time.Since(began), err)
		// The other ways show their client the end of the stream, and no error.
		if name == "WebSocket" && err == nil {
			t.Errorf("%s: it seems to be complete", name)
		}
	case <-ctx.Done():
		t.Errorf("%s: it is open after %v", name, time.Since(began))
	}
}
