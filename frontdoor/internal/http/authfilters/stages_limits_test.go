package authfilters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
)

// decisions is an authn and authz with configurable decisions.
type decisions struct {
	services.Authn
	services.Authz
	away      atomic.Bool
	anonymous bool
	allowed   string
}

func (d *decisions) Authenticate(context.Context, services.Credentials) (services.Authentication, error) {
	switch {
	case d.away.Load():
		return services.Authentication{}, services.Unavailable("authn cannot be reached")
	case !d.anonymous:
		return services.Authentication{}, services.Unauthorized("")
	}
	return services.Authentication{User: services.UserInfo{Name: services.UserAnonymous}}, nil
}

func (d *decisions) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: a.Path == d.allowed}, nil
}

// TestProbed answers health checks without authn, if anonymous users may read them.
func TestProbed(t *testing.T) {
	for _, c := range []struct {
		what, path, header string
		anonymous          bool
		method             string
		want               bool
	}{
		{"allowed", "/livez", "", true, "GET", true},
		{"allowed, HEAD", "/livez", "", true, "HEAD", true},
		{"anonymous users are off", "/livez", "", false, "GET", false},
		{"the policy says no", "/readyz", "", true, "GET", false},
		{"with a token", "/livez", "Authorization", true, "GET", false},
		{"as somebody else", "/livez", "Impersonate-User", true, "GET", false},
		{"another method", "/livez", "", true, "POST", false},
		{"a single check", "/livez/etcd", "", true, "GET", false},
	} {
		d := &decisions{anonymous: c.anonymous, allowed: "/livez"}
		control := &Control{Authn: d, Authz: d, HealthOpened: make(chan struct{}, 1)}
		open, err := control.authorizeHealth(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		control.health.Store(open)
		d.away.Store(true)
		if _, err := control.authorizeHealth(t.Context()); err == nil {
			t.Fatal("an authn that is away decides")
		}
		served := false
		r := &request.Request{Request: httptest.NewRequest(c.method, c.path, nil), Health: true,
			Plain: func(http.ResponseWriter, *request.Request) error { served = true; return nil }}
		if c.header != "" {
			r.Header.Set(c.header, "x")
		}
		err = control.Probed(func(http.ResponseWriter, *request.Request) error { return errors.New("the long way") })(httptest.NewRecorder(), r)
		if served != c.want || (err == nil) != c.want {
			t.Errorf("%s: served %v, error %v", c.what, served, err)
		}
	}
}

// limited serves writes of a user named by a header, each of which blocks until it is
// released or its client leaves.
func limited(t *testing.T, seats int) (server *httptest.Server, entered, let chan struct{}) {
	t.Helper()
	entered, let = make(chan struct{}, 100), make(chan struct{})
	control := &Control{Reads: inflight.New(1, time.Minute), Writes: inflight.New(seats, time.Minute), Memory: ledger.New(64 << 20)}
	handle := control.Received(control.Limited(func(w http.ResponseWriter, r *request.Request) error {
		entered <- struct{}{}
		select {
		case <-let:
		case <-r.Context().Done():
			return r.Context().Err()
		}
		_, err := fmt.Fprint(w, "done")
		return err
	}))
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &request.Request{Request: r, Verb: "create", User: services.UserInfo{Name: r.Header.Get("User")}}
		_ = handle(w, x)
		x.Memory.Release()
	}))
	t.Cleanup(server.Close)
	return server, entered, let
}

func send(ctx context.Context, server *httptest.Server, user string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("body"))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User", user)
	return server.Client().Do(r)
}

// TestDisconnectFreesSeat: when a client disconnects, its seat or its place in the queue
// is free at once.
func TestDisconnectFreesSeat(t *testing.T) {
	server, entered, let := limited(t, 1)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 2)
	for range 2 {
		go func() {
			response, err := send(ctx, server, "leaving")
			if err == nil {
				_ = response.Body.Close()
			}
			left <- err
		}()
	}
	<-entered
	answered := make(chan error, 1)
	go func() {
		response, err := send(t.Context(), server, "staying")
		if err == nil {
			err = response.Body.Close()
		}
		answered <- err
	}()
	leave()
	if a, b := <-left, <-left; a == nil || b == nil {
		t.Errorf("who left was answered: %v, %v", a, b)
	}
	close(let)
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the seat is not free")
	}
}
