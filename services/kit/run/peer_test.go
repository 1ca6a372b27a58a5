package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
)

// gate is a store whose Revision blocks until letGo is closed.
type gate struct {
	services.Store
	entered, letGo chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}, 9), letGo: make(chan struct{})} }

func (g *gate) Revision(ctx context.Context, _ resource.GroupResource) (int64, error) {
	g.entered <- struct{}{}
	select {
	case <-g.letGo:
		return 7, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (g *gate) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	return services.Object{Key: r.Key}, nil
}

func (g *gate) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	_, err := g.Revision(ctx, resource.GroupResource{})
	return services.Object{Key: r.Key}, err
}

func (g *gate) Delete(context.Context, services.DeleteRequest) (services.Object, error) {
	panic("a fault")
}

func openGate() *gate {
	g := newGate()
	close(g.letGo)
	return g
}

func newAuthority(t *testing.T) *peertls.Authority {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

func issue(t *testing.T, a *peertls.Authority, names ...string) peertls.Files {
	t.Helper()
	files, err := a.Issue(t.TempDir(), names...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func storeService(impl services.Store) run.Service {
	return run.Service{Name: "store", Offers: []run.Dependency{contract.Store}, Start: func(_ context.Context, n *run.Node) error {
		contract.Store.Offer(n, impl)
		return nil
	}}
}

func serve(t *testing.T, impl services.Store, files peertls.Files, address string) *run.Running {
	t.Helper()
	return start(t, app(storeService(impl)), append(files.Flags(), "--rpc-address="+address, "--status-address=127.0.0.1:0")...)
}

// dial returns a client of the store in a process with that certificate.
func dial(t *testing.T, files peertls.Files, address string) services.Store {
	t.Helper()
	var client services.Store
	user := run.Service{Name: "user", Needs: []run.Dependency{contract.Store}, Start: func(ctx context.Context, n *run.Node) (err error) {
		client, err = contract.Store.Use(ctx, n)
		return err
	}}
	start(t, app(user), append(files.Flags(), "--store-address="+address)...)
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestAllowedCallersAreServed(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0")
	for _, names := range [][]string{{"frontdoor"}, {"authn"}, {"portico", "authz", "admission"}} {
		client := dial(t, issue(t, authority, names...), server.RPCAddress())
		if got, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{}); got != 7 || err != nil {
			t.Errorf("%v: got %d, %v", names, got, err)
		}
	}
}

func TestOtherCallersAreRefused(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0")
	for _, name := range []string{"token-cleaner", "store", "unheard-of"} {
		_, err := dial(t, issue(t, authority, name), server.RPCAddress()).Revision(within(t, 10*time.Second), resource.GroupResource{})
		if err == nil || !strings.Contains(err.Error(), "may not call") {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	reader := dial(t, issue(t, authority, "authn"), server.RPCAddress())
	if _, err := reader.Create(within(t, 10*time.Second), services.CreateRequest{}); err == nil || !strings.Contains(err.Error(), "may not call") {
		t.Errorf("a reader writes: got error %v", err)
	}
	writer := dial(t, issue(t, authority, "frontdoor"), server.RPCAddress())
	if _, err := writer.Create(within(t, 10*time.Second), services.CreateRequest{}); err != nil {
		t.Errorf("the writer writes: %v", err)
	}
}

func TestStrangersDoNotGetThrough(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0")
	otherClient := dial(t, issue(t, newAuthority(t), "frontdoor"), server.RPCAddress())
	_, err := otherClient.Revision(within(t, 300*time.Millisecond), resource.GroupResource{})
	// It waits for a connection, unless the process has had none for a second.
	if !services.IsReason(err, services.ReasonTimeout) && !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("another authority's certificate: got error %v", err)
	}
	// The server at the store's address must have a certificate of the store.
	impostor := serve(t, openGate(), issue(t, authority, "store", "other"), "127.0.0.1:0")
	files := issue(t, authority, "frontdoor")
	if _, err := dial(t, files, impostor.RPCAddress()).Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Errorf("a process of several services: %v", err)
	}
}

func TestAPanicIsAnErrorOfOneCall(t *testing.T) {
	authority := newAuthority(t)
	server := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0")
	client := dial(t, issue(t, authority, "frontdoor"), server.RPCAddress())
	if _, err := client.Delete(within(t, 10*time.Second), services.DeleteRequest{}); !services.IsReason(err, services.ReasonInternalError) {
		t.Errorf("got error %v", err)
	}
	if _, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Errorf("after the panic: %v", err)
	}
}

// TestCallsToAnAbsentPeer: calls wait shortly for a peer that has just stopped. After that
// they fail at once and name the peer, until it is back.
func TestCallsToAnAbsentPeer(t *testing.T) {
	authority := newAuthority(t)
	files := issue(t, authority, "store")
	server := serve(t, openGate(), files, "127.0.0.1:0")
	address := server.RPCAddress()
	client := dial(t, issue(t, authority, "frontdoor"), address+","+address)
	if _, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	server.Stop()
	_, err := client.Revision(within(t, 100*time.Millisecond), resource.GroupResource{})
	// A second later, as it may be on a busy machine, calls no longer wait.
	if took := time.Since(stopped); !services.IsReason(err, services.ReasonTimeout) && took < time.Second {
		t.Errorf("%v after the peer has gone: got error %v", took, err)
	}
	began := time.Now()
	for _, write := range []bool{false, true} {
		var err error
		if write {
			_, err = client.Create(within(t, 20*time.Second), services.CreateRequest{})
		} else {
			_, err = client.Revision(within(t, 20*time.Second), resource.GroupResource{})
		}
		var s *services.Status
		if !errors.As(err, &s) || s.Code != 503 || !strings.Contains(s.Message, "store cannot be reached") || s.Details.RetryAfterSeconds == 0 {
			t.Errorf("without the peer, write %v: got error %v", write, err)
		}
	}
	if took := time.Since(began); took > 15*time.Second { // they take one second, and would wait for 20 s each
		t.Errorf("two calls took %v", took)
	}
	serve(t, openGate(), files, address)
	back := time.Now()
	eventually(t, func() bool {
		_, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{})
		return err == nil
	})
	took := time.Since(back)
	if t.Logf("calls succeed %v after the peer has come back", took); took > 10*time.Second {
		t.Error("that is too late")
	}
}

// TestAStartWaitsForItsPeer starts a process before the service that it needs.
func TestAStartWaitsForItsPeer(t *testing.T) {
	authority := newAuthority(t)
	first := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0")
	address := first.RPCAddress()
	first.Stop()
	called, answered := make(chan struct{}), make(chan error, 1)
	user := run.Service{Name: "user", Needs: []run.Dependency{contract.Store}, Start: func(ctx context.Context, n *run.Node) error {
		client, err := contract.Store.Use(ctx, n)
		if err != nil {
			return err
		}
		close(called)
		_, err = client.Revision(ctx, resource.GroupResource{})
		return err
	}}
	go func() {
		running, err := run.Start(context.Background(), app(user), append(issue(t, authority, "frontdoor").Flags(), "--store-address="+address, "--log-level=error"))
		if err == nil {
			running.Stop()
		}
		answered <- err
	}()
	<-called
	select {
	case err := <-answered:
		t.Fatalf("the start did not wait: %v", err)
	case <-time.After(2500 * time.Millisecond): // longer than the calls of a started process wait
	}
	serve(t, openGate(), issue(t, authority, "store"), address)
	if err := <-answered; err != nil {
		t.Errorf("after the peer has come: %v", err)
	}
}

// TestASilentPeerIsNoticed connects to the peer through a proxy that stops forwarding and
// keeps connections open: waiting calls fail within seconds.
func TestASilentPeerIsNoticed(t *testing.T) {
	authority := newAuthority(t)
	g := newGate()
	server := serve(t, g, issue(t, authority, "store"), "127.0.0.1:0")
	way := newWay(t, server.RPCAddress())
	client := dial(t, issue(t, authority, "frontdoor"), way.address)
	answered := make(chan error, 1)
	go func() {
		_, err := client.Revision(within(t, 30*time.Second), resource.GroupResource{})
		answered <- err
	}()
	<-g.entered
	way.silence(true)
	began := time.Now()
	if err := <-answered; !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("got error %v", err)
	}
	if took := time.Since(began); took > 10*time.Second { // it takes two and a half, and by gRPC's keepalive it would take 15
		t.Errorf("the call failed after %v", took)
	}
	way.silence(false)
	close(g.letGo)
	eventually(t, func() bool {
		_, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{})
		return err == nil
	})
}

func TestCallsInProgressEndBeforeTheProcess(t *testing.T) {
	authority := newAuthority(t)
	g := newGate()
	server := serve(t, g, issue(t, authority, "store"), "127.0.0.1:0")
	client := dial(t, issue(t, authority, "frontdoor"), server.RPCAddress())
	answered := make(chan error, 1)
	go func() {
		_, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{})
		answered <- err
	}()
	<-g.entered
	stopped := make(chan struct{})
	go func() { server.Stop(); close(stopped) }()
	eventually(t, func() bool { return status(t, server, "/readyz") == 500 })
	close(g.letGo)
	if err := <-answered; err != nil {
		t.Errorf("the call in progress: %v", err)
	}
	<-stopped
}

// TestAWriteInProgressIsNotGivenUp: a write that a stopping peer still executes is not
// canceled, although new calls are refused: otherwise its outcome would be unknown.
func TestAWriteInProgressIsNotGivenUp(t *testing.T) {
	authority := newAuthority(t)
	g := newGate()
	server := serve(t, g, issue(t, authority, "store"), "127.0.0.1:0")
	client := dial(t, issue(t, authority, "frontdoor"), server.RPCAddress())
	since := services.Attempt{Since: 1} // else the client requests a revision first, which waits too
	answered := make(chan error, 1)
	go func() {
		_, err := client.Update(within(t, 20*time.Second), services.UpdateRequest{Attempt: since})
		answered <- err
	}()
	<-g.entered
	go server.Stop()
	// Until other calls are refused.
	eventually(t, func() bool {
		_, err := client.Create(within(t, 10*time.Second), services.CreateRequest{Attempt: since})
		return services.IsReason(err, services.ReasonServiceUnavailable)
	})
	select {
	case err := <-answered:
		t.Errorf("the write was given up: %v", err)
	default:
	}
	close(g.letGo)
	if err := <-answered; err != nil {
		t.Errorf("the write in progress: %v", err)
	}
}

func TestCertificatesAreRenewedByTheirFiles(t *testing.T) {
	old, renewed := newAuthority(t), newAuthority(t)
	storeFiles, doorFiles := issue(t, old, "store"), issue(t, old, "frontdoor")
	server := serve(t, openGate(), storeFiles, "127.0.0.1:0")
	if _, err := dial(t, doorFiles, server.RPCAddress()).Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Fatal(err)
	}
	if _, err := renewed.Issue(filepath.Dir(storeFiles.CA), "store"); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, issue(t, renewed, "frontdoor"), server.RPCAddress()).Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Errorf("with a certificate of the new authority: %v", err)
	}
	// A certificate without its key is not used.
	if err := os.WriteFile(storeFiles.Key, []byte("half written"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := dial(t, issue(t, renewed, "frontdoor"), server.RPCAddress()).Revision(within(t, 10*time.Second), resource.GroupResource{}); err != nil {
		t.Errorf("with a broken key file: %v", err)
	}
}

func TestWrongTransportFlags(t *testing.T) {
	authority := newAuthority(t)
	files := issue(t, authority, "authz")
	user := run.Service{Name: "user", Needs: []run.Dependency{contract.Store}, Start: func(context.Context, *run.Node) error { return nil }}
	store := storeService(openGate())
	for _, c := range []struct {
		service run.Service
		args    []string
		want    string
	}{
		{user, nil, "--store-address is required"},
		{user, []string{"--store-address=x:1"}, "--peer-ca-file is required"},
		{user, []string{"--store-address=x:1", files.Flags()[0]}, "--peer-cert-file is required"},
		{user, []string{"--rpc-address=x:1"}, "--rpc-address"}, // it offers nothing
		{store, []string{"--rpc-address=127.0.0.1:0"}, "--peer-ca-file is required"},
		{store, files.Flags(), "--peer-ca-file has no effect without --rpc-address"},
		{store, append(files.Flags(), "--rpc-address=127.0.0.1:0"), `the certificate is for ["authz"], but this process offers store`},
		{store, []string{"--rpc-address=127.0.0.1:0", "--peer-ca-file=/none", "--peer-cert-file=/none", "--peer-key-file=/none"}, "--peer-cert-file"},
		{store, []string{"--unheard-of"}, "--unheard-of"},
		{store, []string{"word"}, `unexpected argument "word"`},
		{store, []string{"--log-level=loud"}, "--log-level"},
		{store, []string{"--log-format=xml"}, "--log-format"},
		{store, []string{"--vocabulary=x"}, "--vocabulary"},
	} {
		running, err := run.Start(t.Context(), app(c.service), append([]string{"--log-level=error"}, c.args...))
		if err == nil {
			running.Stop()
		}
		if !errors.Is(err, run.ErrUsage) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v: got error %v, want one about %s", c.args, err, c.want)
		}
	}
}
