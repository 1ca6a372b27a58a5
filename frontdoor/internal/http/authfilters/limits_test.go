package authfilters

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/inflight"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// TestShared: a request names its FlowSchema and level in the response, also if it is refused. A watch
// needs no seat after its start, and health checks never do.
func TestShared(t *testing.T) {
	control := &Control{Shares: fairness.New(fairness.Config{Seats: 1})}
	control.Shares.Set([]fairness.Level{{Name: fairness.CatchAll, UID: "level", Shares: 1}}, nil)
	serve := func(r *request.Request, handler func(*request.Request) error) (http.Header, error) {
		out := httptest.NewRecorder()
		r.Request = httptest.NewRequest(http.MethodGet, "/version", nil)
		r.User, r.Plain = services.UserInfo{Name: "jane"}, func(http.ResponseWriter, *request.Request) error { return nil }
		err := control.Limited(func(_ http.ResponseWriter, r *request.Request) error { return handler(r) })(out, r)
		return out.Header(), err
	}
	nothing := func(*request.Request) error { return nil }
	refused := func(err error) bool { return services.IsReason(err, services.ReasonTooManyRequests) }
	header, err := serve(&request.Request{Verb: "get"}, func(*request.Request) error {
		header, err := serve(&request.Request{Verb: "get"}, nothing)
		if !refused(err) || header.Get("X-Kubernetes-PF-PriorityLevel-UID") != "level" {
			t.Errorf("a second request gets %v, with %v", err, header)
		}
		if _, err := serve(&request.Request{Verb: "get", Health: true}, nothing); err != nil {
			t.Errorf("a health check gets %v", err)
		}
		return nil
	})
	if _, named := header["X-Kubernetes-Pf-Flowschema-Uid"]; err != nil || !named || header.Get("X-Kubernetes-PF-PriorityLevel-UID") != "level" {
		t.Errorf("a request gets %v, with %v", err, header)
	}
	if _, err := serve(&request.Request{Verb: "watch"}, func(r *request.Request) error {
		if _, err := serve(&request.Request{Verb: "get"}, nothing); !refused(err) {
			t.Errorf("while a watch starts, another request gets %v", err)
		}
		r.Underway(http.StatusOK)
		_, err := serve(&request.Request{Verb: "get"}, nothing)
		return err
	}); err != nil {
		t.Errorf("while a watch is open, another request gets %v", err)
	}
	if c := control.Shares.Counts(false); c.Served != 0 {
		t.Errorf("left: %+v", c)
	}
}

// TestWatchesOfAUser: a watch counts until it ends, also after it has returned its seat; nothing else counts.
func TestWatchesOfAUser(t *testing.T) {
	control := &Control{Shares: fairness.New(fairness.Config{Seats: 100}), Watches: inflight.NewWatches(2)}
	serve := func(verb, user string, groups []string, handler func(*request.Request) error) error {
		r := &request.Request{Verb: verb, Request: httptest.NewRequest(http.MethodGet, "/version", nil), User: services.UserInfo{Name: user, Groups: groups}}
		return control.Limited(func(_ http.ResponseWriter, r *request.Request) error { return handler(r) })(httptest.NewRecorder(), r)
	}
	nothing := func(*request.Request) error { return nil }
	err := serve("watch", "jane", nil, func(r *request.Request) error {
		r.Underway(http.StatusOK)
		return serve("watch", "jane", nil, func(*request.Request) error {
			if err := serve("watch", "jane", nil, nothing); !services.IsReason(err, services.ReasonTooManyRequests) {
				t.Errorf("a third watch gets %v", err)
			}
			for _, err := range []error{serve("list", "jane", nil, nothing), serve("watch", "bob", nil, nothing), serve("watch", "jane", []string{services.GroupMasters}, nothing)} {
				if err != nil {
					t.Error(err)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	if err := serve("watch", "jane", nil, nothing); err != nil {
		t.Errorf("after the others have ended, a watch gets %v", err)
	}
}
