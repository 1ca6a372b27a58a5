package authfilters

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// TestSeatsOfConnections: connections and logs keep seats of their own, so that neither
// they nor other requests wait for each other, and one user cannot take all.
func TestSeatsOfConnections(t *testing.T) {
	c := &Control{Reads: inflight.New(1, time.Millisecond), Writes: inflight.New(1, time.Millisecond), Connections: inflight.New(4, time.Millisecond)}
	pods := &catalogue.Type{Resource: "pods"}
	exec, log := &catalogue.Subresource{Name: "exec", Connect: true}, &catalogue.Subresource{Name: "log"}
	status := &catalogue.Subresource{Name: "status"}
	ctx, end := context.WithCancel(t.Context())
	begun, ended := make(chan error), make(chan error)
	ask := func(user, verb string, sub *catalogue.Subresource, handle request.Handler) error {
		r := &request.Request{Request: httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), Verb: verb, Type: pods, Subresource: sub,
			User: services.UserInfo{Name: user}}
		return c.Limited(handle)(httptest.NewRecorder(), r)
	}
	held := func(_ http.ResponseWriter, r *request.Request) error {
		r.Begin(http.StatusOK) // which returns no seat
		begun <- nil
		<-ctx.Done()
		return nil
	}
	open := func(user, verb string, sub *catalogue.Subresource) {
		t.Helper()
		go func() { ended <- ask(user, verb, sub, held) }()
		<-begun
	}
	open("a", "create", exec)
	open("a", "get", log)
	open("a", "get", exec)
	at := func(http.ResponseWriter, *request.Request) error { return nil }
	if err := ask("a", "get", exec, at); !services.IsReason(err, services.ReasonTooManyRequests) {
		t.Errorf("a fourth connection of a user: got %v", err)
	}
	open("b", "create", exec)
	for _, verb := range []string{"get", "list", "create", "update"} {
		for _, sub := range []*catalogue.Subresource{nil, status} {
			if err := ask("a", verb, sub, at); err != nil {
				t.Errorf("%s beside connections: got %v", verb, err)
			}
		}
	}
	end()
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
