package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// withdrawn takes the binding from a user who runs a command, is attached to a container and
// forwards a port, over both protocols, and follows a log.
func (s *placed) withdrawn(t *testing.T) {
	group := s.Vocabulary.Group("rbac.authorization.")
	rbac := "/apis/" + group + "/v1/namespaces/" + s.namespace
	ok(t, s.Cluster, post(rbac+"/roles", `{"metadata":{"name":"carla"},"rules":[{"apiGroups":[""],"resources":["pods/exec","pods/attach","pods/portforward","pods/proxy","pods/log"],"verbs":["get","create"]}]}`))
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
	at := func(subresource string, options runtime.Object) *url.URL {
		return client.CoreV1().RESTClient().Post().Resource("pods").Namespace(s.namespace).Name("p").SubResource(subresource).
			VersionedParams(options, scheme.ParameterCodec).URL()
	}
	run := func(address *url.URL, overSPDY bool) func(context.Context, io.Writer) error {
		executor, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, address.String())
		if overSPDY {
			executor, err = remotecommand.NewSPDYExecutor(config, http.MethodPost, address)
		}
		return func(ctx context.Context, out io.Writer) error {
			if err != nil {
				return err
			}
			in, keys := io.Pipe()
			defer in.Close()
			go func() { _, _ = keys.Write([]byte("open\n")) }() // fails when the command has ended
			return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out})
		}
	}
	exec := at("exec", &corev1.PodExecOptions{Container: "main", Command: []string{"cat"}, Stdin: true, Stdout: true})
	attach := at("attach", &corev1.PodAttachOptions{Container: "main", Stdin: true, Stdout: true})
	echo := startEcho(t)
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
	for name, connect := range map[string]func(context.Context, io.Writer) error{
		"exec over SPDY": run(exec, true), "exec over WebSocket": run(exec, false), "attach over SPDY": run(attach, true), "attach over WebSocket": run(attach, false),
		"port-forward over SPDY": forward(config, at("portforward", &corev1.PodPortForwardOptions{}), echo, true), "log": follow,
		"port-forward over WebSocket": forward(config, at("portforward", &corev1.PodPortForwardOptions{}), echo, false),
	} {
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
		if time.Since(began) > withdrawn {
			t.Errorf("%s: it was open for %v", name, time.Since(began))
		}
		// The other ways show their client the end of the stream, and no error.
		if strings.HasSuffix(name, "over WebSocket") && err == nil {
			t.Errorf("%s: it seems to be complete", name)
		}
	case <-ctx.Done():
		t.Errorf("%s: it is open after %v", name, time.Since(began))
	}
}

// startEcho starts a server that repeats what it reads, and returns its port.
func startEcho(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// forward forwards one connection to a port, until the whole connection ends.
func forward(config *rest.Config, at *url.URL, port string, overSPDY bool) func(context.Context, io.Writer) error {
	return func(ctx context.Context, out io.Writer) error {
		dialer, err := portforward.NewSPDYOverWebsocketDialer(at, config)
		if overSPDY {
			transport, upgrader, failed := spdy.RoundTripperFor(config)
			dialer, err = spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, at), failed
		}
		if err != nil {
			return err
		}
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		if err != nil {
			return err
		}
		defer conn.Close()
		header := http.Header{}
		header.Set(corev1.PortHeader, port)
		header.Set(corev1.PortForwardRequestIDHeader, "0")
		header.Set(corev1.StreamType, corev1.StreamTypeError)
		if _, err := conn.CreateStream(header); err != nil {
			return err
		}
		header.Set(corev1.StreamType, corev1.StreamTypeData)
		data, err := conn.CreateStream(header)
		if err != nil {
			return err
		}
		if _, err := data.Write([]byte("open\n")); err != nil {
			return err
		}
		go func() { _, _ = io.Copy(out, data) }() // ends with the connection
		select {
		case <-conn.CloseChan():
			return errors.New("the connection was closed")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
