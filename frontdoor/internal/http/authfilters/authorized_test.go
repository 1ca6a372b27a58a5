package authfilters

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// verbs allows only the verbs that it has.
type verbs map[string]bool

func (v verbs) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: v[a.Verb]}, nil
}

func (v verbs) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{}, nil
}

// TestCreateToConnect: since release 1.35 a command that begins with a GET needs the verb create
// too. Proxies and logs do not.
func TestCreateToConnect(t *testing.T) {
	reader, both := verbs{"get": true}, verbs{"get": true, "create": true}
	connects := func(name string) *catalogue.Subresource { return &catalogue.Subresource{Name: name, Connect: true} }
	for _, c := range []struct {
		resource string
		sub      *catalogue.Subresource
		by       verbs
		since    bool
		allowed  bool
	}{
		{"pods", connects("exec"), reader, false, true},
		{"pods", connects("exec"), reader, true, false},
		{"pods", connects("attach"), reader, true, false},
		{"pods", connects("portforward"), reader, true, false},
		{"pods", connects("exec"), both, true, true},
		{"pods", connects("exec"), verbs{"create": true}, true, false},
		{"pods", connects("proxy"), reader, true, true},
		{"services", connects("proxy"), reader, true, true},
		{"pods", &catalogue.Subresource{Name: "log"}, reader, true, true},
		{"pods", nil, reader, true, true},
	} {
		r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), Verb: "get",
			Type: &catalogue.Type{Resource: c.resource}, Subresource: c.sub, Name: "a"}
		control := &Control{Authz: c.by, Log: slog.New(slog.DiscardHandler), CreateToConnect: c.since}
		reached := false
		err := control.Authorized(func(http.ResponseWriter, *request.Request) error { reached = true; return nil })(httptest.NewRecorder(), r)
		if reached != c.allowed || (err == nil) != c.allowed || err != nil && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s %+v by %v since 1.35 %v: %v", c.resource, c.sub, c.by, c.since, err)
		}
	}
}
