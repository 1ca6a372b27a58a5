package etcd_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/etcd"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// use starts a process with a connection to etcd.
func use(t *testing.T, args ...string) (client *clientv3.Client, err error) {
	t.Helper()
	user := run.Service{Name: "user", Needs: []run.Dependency{etcd.Client, etcd.Overrides}, Start: func(ctx context.Context, n *run.Node) (err error) {
		if client, err = etcd.Client.Use(ctx, n); err == nil {
			_, err = etcd.Overrides.Use(ctx, n)
		}
		return err
	}}
	running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{user}}, append(args, "--log-level=error"))
	if err == nil {
		t.Cleanup(running.Stop)
	}
	return client, err
}

// TestConnectsWithMutualTLS checks the handshake: the client verifies the server with the
// CA and presents its certificate. Everything later is up to the client library.
func TestConnectsWithMutualTLS(t *testing.T) {
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Issue(t.TempDir(), "etcd", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.Issue(t.TempDir(), "store")
	if err != nil {
		t.Fatal(err)
	}
	address, callers := listen(t, server)
	_, err = use(t, "--etcd-servers=https://"+address,
		"--etcd-cafile="+client.CA, "--etcd-certfile="+client.Cert, "--etcd-keyfile="+client.Key)
	if err != nil {
		t.Fatal(err)
	}
	connects := func() {
		t.Helper()
		select {
		case name := <-callers:
			if name != "store" {
				t.Errorf("the client showed the certificate of %q", name)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the client has not connected")
		}
	}
	connects()
	// A key without its certificate, as while they are replaced: it connects with what it has.
	other, err := os.ReadFile(server.Key)
	if err == nil {
		err = os.WriteFile(client.Key, other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	connects() // perhaps from before
	connects()
}

// listen accepts TLS connections, and closes each after the name in the client's certificate was received
// from a channel.
func listen(t *testing.T, files peertls.Files) (address string, callers <-chan string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	names := make(chan string)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			name := ""
			if err := conn.(*tls.Conn).Handshake(); err != nil {
				name = err.Error()
			} else {
				name = conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
			}
			select {
			case names <- name:
			case <-t.Context().Done():
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), names
}

func TestDoesNotWaitForTheServer(t *testing.T) {
	unused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := unused.Addr().String()
	_ = unused.Close()
	client, err := use(t, "--etcd-servers=http://"+address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Get(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v", err)
	}
}

// TestUnsentRequestsAreKnown: a request that fails without a connection was not sent; one
// that fails on a connection may have been.
func TestUnsentRequestsAreKnown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go breaking(listener)
	client, err := use(t, "--etcd-servers=http://"+listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(limit time.Duration) bool {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		sending, ctx := etcd.Track(ctx)
		if _, err := client.Txn(ctx).Then(clientv3.OpPut("a", "b")).Commit(); err == nil {
			t.Fatal("got a response")
		}
		return sending.Never()
	}
	if ask(time.Minute) { // for the connection, which may be slow
		t.Error("a request whose connection breaks counts as not sent")
	}
	_ = listener.Close()
	for !ask(time.Second) { // until the client has noticed
	}
}

// breaking is a server that closes the first connection after one request, and later
// connections at once.
func breaking(listener net.Listener) {
	breakFirst(listener)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_ = conn.Close()
	}
}

func breakFirst(listener net.Listener) {
	conn, err := listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte{0, 0, 0, 4, 0, 0, 0, 0, 0}) // SETTINGS
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil || bytes.Contains(buffer[:n], []byte{0x0a, 0x01, 'a', 0x12, 0x01, 'b'}) { // the put
			return
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, c := range []struct {
		want string
		args []string
	}{
		{"--etcd-servers is required", nil},
		{`"localhost:2379" is not of the form`, []string{"--etcd-servers=localhost:2379"}},
		{"either all or none", []string{"--etcd-servers=https://a:1,http://localhost:1"}},
		{"--etcd-certfile and --etcd-keyfile", []string{"--etcd-servers=https://a:1", "--etcd-certfile=x"}},
		{"need --etcd-servers with https", []string{"--etcd-servers=http://127.0.0.1:1", "--etcd-cafile=x"}},
		{"--etcd-cafile, --etcd-certfile, --etcd-keyfile: open /none", []string{"--etcd-servers=https://a:1", "--etcd-cafile=/none"}},
		{"http://203.0.113.5:2379 is on another machine", []string{"--etcd-servers=http://203.0.113.5:2379"}},
		{"use https://etcd.example:2379", []string{"--etcd-servers=http://etcd.example:2379"}},
		{"http://b:1 is on another machine", []string{"--etcd-servers=http://localhost:1,http://b:1"}},
		{"http://b:1 is on another machine", []string{"--etcd-servers=https://a:1,http://b:1"}},
		{"http://0.0.0.0:1 is on another machine", []string{"--etcd-servers=http://0.0.0.0:1"}},
		{`--etcd-servers-overrides: "/events" is not of the form`, overridden("/events")},
		{"is not of the form", overridden("events#http://localhost:2")},
		{"is not of the form", overridden("/events#")},
		{`--etcd-servers-overrides: "localhost:2" is not of the form`, overridden("/events#localhost:2")},
		{"http://b:1 is on another machine", overridden("/events#http://b:1")},
		{"either all or none", overridden("/events#http://localhost:2;https://a:2")},
		{"http://localhost:1 is a server of --etcd-servers too", overridden("/events#http://localhost:1/")},
		{"http://localhost:3 is a server of events too", overridden("/events#http://localhost:2;http://localhost:3,batch/jobs#http://localhost:3")},
		{"events is named twice", overridden("/events#http://localhost:2,/events#http://localhost:3")},
		{"/foos: is not a resource that can have an etcd of its own; these can: ", overridden("/foos#http://localhost:2")},
		{"use /events", overridden("events.platform.io/events#http://localhost:2")},
		{"leases: is not a resource that can have an etcd of its own", overridden("coordination.k8s.io/leases#http://localhost:2")}, // of the other vocabulary
		{"read together with other resources, by admission, authz", overridden("rbac.authorization.platform.io/roles#http://localhost:2")},
		{"read together with other resources, by admission, authn, authz", overridden("/pods#http://localhost:2")},
		{"/services: cannot have an etcd of its own", overridden("/services#http://localhost:2")},
	} {
		if _, err := use(t, c.args...); !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got error %v, want one about %s", c.args, err, c.want)
		}
	}
}

// overridden returns flags with overrides.
func overridden(overrides string) []string {
	return []string{"--etcd-servers=http://localhost:1", "--etcd-servers-overrides=" + overrides}
}

// TestOverrides: resources with the same servers are one cluster, whatever their order.
func TestOverrides(t *testing.T) {
	var got []etcd.Override
	user := run.Service{Name: "user", Needs: []run.Dependency{etcd.Client, etcd.Overrides}, Start: func(ctx context.Context, n *run.Node) (err error) {
		got, err = etcd.Overrides.Use(ctx, n)
		return err
	}}
	running, err := run.Start(t.Context(), run.App{Name: "test", Services: []run.Service{user}}, append(overridden(
		"/events#http://localhost:3;http://localhost:2,coordination.k8s.io/leases#http://localhost:2;http://localhost:3/,batch/jobs#http://localhost:4"),
		"--vocabulary=k8s", "--log-level=error"))
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()
	events, leases, jobs := resource.GroupResource{Resource: "events"}, resource.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, resource.GroupResource{Group: "batch", Resource: "jobs"}
	if len(got) != 2 || got[0].Name != "events" || !slices.Equal(got[0].Types, []resource.GroupResource{events, leases}) ||
		got[1].Name != "jobs.batch" || !slices.Equal(got[1].Types, []resource.GroupResource{jobs}) || got[0].Client == nil {
		t.Errorf("got %+v", got)
	}
}

// TestApart: no type that other services read for their decisions may have an etcd of its own.
func TestApart(t *testing.T) {
	v := vocabulary.K8s()
	for name, callers := range services.Callers() {
		for _, c := range callers {
			for _, gr := range c.Types {
				gr.Group = v.Group(gr.Group)
				if slices.Contains(etcd.Apart(v), gr) {
					t.Errorf("%s: %s reads %s", name, c.Service, gr)
				}
			}
		}
	}
}
