package frontdoor

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/subresources"
	"github.com/portico-platform/portico/frontdoor/internal/http/authfilters"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestRoutes: which paths that are no resources are served, and how others are refused.
func TestRoutes(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{actions: &subresources.Handlers{}, access: &authfilters.Control{Shares: fairness.New(fairness.Config{Seats: 1})}}
	d.types.Store(&knowledge{documents: discovery.New(discovery.Options{Catalogue: types, Vocabulary: vocabulary.K8s(), Version: discovery.Version(release.V121)})})
	health := &run.Health{}
	health.Add(run.Check{Name: "ping", Live: true, Probe: func(context.Context) error { return nil }})
	d.router = d.routes(&run.Node{Health: health, Metrics: prometheus.NewRegistry()}, true)
	for _, c := range []struct {
		method, path string
		code         int // of the Status if status, else as written
		status       bool
	}{
		{"GET", "/", 200, false},
		{"HEAD", "/", 200, false},
		{"POST", "/", 405, true},
		{"GET", "/version", 200, false},
		{"GET", "/version/", 200, false},
		{"GET", "/version/more", 404, false},
		{"GET", "/api", 200, false},
		{"GET", "/api/", 200, false},
		{"GET", "/api/v1", 200, false},
		{"GET", "/api/v7", 404, true},
		{"GET", "/apis", 200, false},
		{"GET", "/apis/apps", 200, false},
		{"GET", "/apis/apps/v1/", 200, false},
		{"GET", "/apis/apps/v7", 404, true},
		{"GET", "/apis/nobody", 404, false},
		{"DELETE", "/apis/apps", 405, true},
		{"GET", "/openapi", 404, false},
		{"GET", "/openapi/nothing", 404, false},
		{"GET", "/livez", 200, false},
		{"GET", "/livez/ping", 200, false},
		{"HEAD", "/readyz/ping", 200, false},
		{"GET", "/livez/", 404, false},
		{"GET", "/livez/nothing", 404, false},
		{"PUT", "/readyz", 405, true},
		{"GET", "/metrics", 200, false},
		{"GET", "/metrics/more", 404, false},
		{"PATCH", "/metrics", 405, true},
		{"GET", "/debug/pprof", 301, false},
		{"GET", "/debug/pprof/", 200, false},
		{"GET", "/debug/pprof/cmdline", 404, false},
		{"GET", "/debug/other", 404, false},
		{"GET", "/debug/api_priority_and_fairness/dump_priority_levels", 200, false},
		{"GET", "/debug/api_priority_and_fairness/dump_queues", 200, false},
		{"GET", "/debug/api_priority_and_fairness/dump_requests", 200, false},
		{"POST", "/debug/api_priority_and_fairness/dump_requests", 405, true},
		{"GET", "/debug/api_priority_and_fairness/", 404, false},
		{"GET", "/.well-known/openid-configuration", 404, false},
		{"GET", "/nowhere", 404, false},
		{"POST", "/nowhere", 404, false},
		{"GET", "//version", 404, false},
		{"GET", "/livez/../metrics", 404, false},
		{"GET", "/%76ersion", 200, false},
	} {
		w := httptest.NewRecorder()
		err := d.plain(w, &request.Request{Request: httptest.NewRequest(c.method, c.path, nil)})
		code := w.Code
		if status := services.AsStatus(err); status != nil {
			code = int(status.Code)
		}
		if code != c.code || (err != nil) != c.status {
			t.Errorf("%s %s: %d, error %v; want %d, with an error %v", c.method, c.path, code, err, c.code, c.status)
		}
	}
}
