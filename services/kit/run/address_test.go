package run_test

import (
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/peertls"
	"github.com/portico-platform/portico/services/resource"
)

// silent accepts connections and never ends a TLS handshake. It returns its address.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, conn) }()
		}
	}()
	return l.Addr().String()
}

// TestAddressesOfOthers: the address of a service that now belongs to another process is no way to
// it, whether that process never ends a handshake or is another service of the suite, and does not
// keep calls from a replica at another address.
func TestAddressesOfOthers(t *testing.T) {
	authority := newAuthority(t)
	store := serve(t, openGate(), issue(t, authority, "store"), "127.0.0.1:0").RPCAddress()
	identity, err := peertls.Load(issue(t, authority, "watch-hub"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	hub, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	other := grpc.NewServer(grpc.Creds(identity.Server()), grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		t.Error("another service got a call")
		return nil
	}))
	t.Cleanup(other.Stop)
	go func() { _ = other.Serve(hub) }()
	for name, wrong := range map[string]string{"a silent process": silent(t), "another service": hub.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			for _, addresses := range []string{wrong + "," + store, store + "," + wrong} {
				client := dial(t, issue(t, authority, "frontdoor"), addresses)
				if got, err := client.Revision(within(t, 10*time.Second), resource.GroupResource{}); got != 7 || err != nil {
					t.Errorf("%s: %d, %v", addresses, got, err)
				}
			}
			alone := dial(t, issue(t, authority, "frontdoor"), wrong)
			if _, err := alone.Revision(within(t, time.Second), resource.GroupResource{}); !services.IsReason(err, services.ReasonTimeout) && !services.IsReason(err, services.ReasonServiceUnavailable) {
				t.Errorf("alone: %v", err)
			}
		})
	}
}
