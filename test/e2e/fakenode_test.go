package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/portico-platform/portico/services/kit/run/peertls"
)

const (
	nodeIdle     = time.Minute
	nodeCreation = 10 * time.Second
)

// fakeNode is a node of a cluster as far as the front door sees it: the HTTPS server that
// has the logs of containers, runs commands in them and forwards their ports, with the
// streaming protocols of real nodes. Commands run on this machine, and the ports are
// those of this machine.
type fakeNode struct {
	port   int
	server *http.Server

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed when there are more lines
	asked []*http.Request
}

// startFakeNode starts a node with a serving certificate, which serves clients with a
// certificate of that authority.
func startFakeNode(serving peertls.Files, clients string) (*fakeNode, error) {
	pair, err := tls.LoadX509KeyPair(serving.Cert, serving.Key)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(clients)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots})
	if err != nil {
		return nil, err
	}
	n := &fakeNode{port: listener.Addr().(*net.TCPAddr).Port, more: make(chan struct{})}
	n.server = &http.Server{Handler: n.handler(), ReadHeaderTimeout: nodeCreation, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = n.server.Serve(listener) }()
	return n, nil
}

// stop ends the node and all its connections.
func (n *fakeNode) stop() { _ = n.server.Close() }

func (n *fakeNode) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.logs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.exec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", n.attach)
	mux.HandleFunc("/portForward/{namespace}/{pod}", n.portForward)
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/metadata", http.StatusFound) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.RequestURI(), body)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.asked = append(n.asked, r)
		n.mu.Unlock()
		mux.ServeHTTP(w, r)
	})
}

// requests returns the requests that the node has received.
func (n *fakeNode) requests() []*http.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*http.Request(nil), n.asked...)
}

// log adds a line to the logs of every container.
func (n *fakeNode) log(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
	close(n.more)
	n.more = make(chan struct{})
}

// since returns the lines from a number on, and a channel that is closed when there are
// more.
func (n *fakeNode) since(number int) ([]string, chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines[min(number, len(n.lines)):], n.more
}

// logs serves the lines; as a real node does, it sends no header before the first one.
func (n *fakeNode) logs(w http.ResponseWriter, r *http.Request) {
	sent := 0
	if tail, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		lines, _ := n.since(0)
		sent = max(0, len(lines)-tail)
	}
	for {
		lines, more := n.since(sent)
		for _, line := range lines {
			_, _ = io.WriteString(w, line+"\n")
		}
		if sent += len(lines); len(lines) > 0 {
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Query().Get("follow") == "" {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (n *fakeNode) exec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, containerRuntime{}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options, nodeIdle, nodeCreation,
		remotecommand.SupportedStreamingProtocols)
}

func (n *fakeNode) attach(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, containerRuntime{}, r.PathValue("pod"), "", r.PathValue("container"), options, nodeIdle, nodeCreation, remotecommand.SupportedStreamingProtocols)
}

func (n *fakeNode) portForward(w http.ResponseWriter, r *http.Request) {
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, containerRuntime{}, r.PathValue("pod"), "", options, nodeIdle, nodeCreation, portforward.SupportedProtocols)
}

// containerRuntime runs what real nodes let a container runtime run.
type containerRuntime struct{}

// ExecInContainer implements remotecommand.Executor.
func (containerRuntime) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errs io.WriteCloser, _ bool,
	_ <-chan remotecommand.TerminalSize, _ time.Duration) error {
	if len(command) == 0 {
		return errors.New("no command")
	}
	run := exec.CommandContext(ctx, command[0], command[1:]...)
	run.Stdout, run.Stderr = streamOrNil(out), streamOrNil(errs)
	if in != nil {
		stdin, err := run.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	err := run.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return utilexec.CodeExitError{Err: exit, Code: exit.ExitCode()}
	}
	return err
}

// streamOrNil returns no writer for no stream.
func streamOrNil(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}

// AttachContainer implements remotecommand.Attacher with a process that repeats what it
// reads.
func (containerRuntime) AttachContainer(_ context.Context, _, _, container string, in io.Reader, out, _ io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize) error {
	if _, err := fmt.Fprintf(out, "attached to %s\n", container); err != nil || in == nil {
		return err
	}
	_, err := io.Copy(out, in)
	return err
}

// PortForward implements portforward.PortForwarder.
func (containerRuntime) PortForward(ctx context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	done := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, stream)
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
		done <- err
	}()
	_, err = io.Copy(stream, conn)
	done <- err
	return <-done
}
