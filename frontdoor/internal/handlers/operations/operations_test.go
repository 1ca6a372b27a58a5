package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/services/kit/run"
)

func node(t *testing.T, args ...string) *run.Node {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &run.Node{Flags: fs, Metrics: prometheus.NewRegistry()}
}

// TestProcesses: what other processes measure, and why they cannot be asked; nothing is passed on
// that does not belong to the suite, or without bound.
func TestProcesses(t *testing.T) {
	page := "portico_x_total{a=\"b\"} 3\nsecret_metric 1\nportico_nan NaN\n" +
		"# TYPE portico_h_seconds histogram\nportico_h_seconds_bucket{le=\"0.5\"} 1\nportico_h_seconds_bucket{le=\"+Inf\"} 2\nportico_h_seconds_sum 7\nportico_h_seconds_count 2\n"
	serve := func(body string, code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	var many strings.Builder
	for i := range maxSeries + 1 {
		fmt.Fprintf(&many, "portico_many{i=\"%d\"} 1\n", i)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	p, err := NewProcesses(node(t, "--status-targets=a="+serve(page, 200)+",b="+closed.Addr().String()+",c="+serve("", 500)+",d="+serve("<html>", 200)+
		",e="+serve(many.String(), 200)+",f=nowhere:1"), "frontdoor", "abc")
	if err != nil {
		t.Fatal(err)
	}
	p.lookup = func(_ context.Context, host string) ([]string, error) {
		if host == "nowhere" {
			return nil, errors.New("not found")
		}
		return []string{host}, nil
	}
	all := map[string]Process{}
	for _, found := range p.All(t.Context()) {
		all[found.Service] = found
	}
	if own := all["frontdoor"]; own.Instance != "abc" || own.Error != "" {
		t.Errorf("own: %+v", own)
	}
	if a, _ := json.Marshal(all["a"].Series); string(a) != `[{"name":"portico_h_seconds","value":7,"count":2,"buckets":[{"le":0.5,"count":1}]},{"name":"portico_x_total","labels":{"a":"b"},"value":3}]` {
		t.Errorf("a: %s", a)
	}
	for service, want := range map[string]string{"b": "does not respond", "c": "responded with 500", "d": "not a list of metrics", "f": "not be resolved"} {
		if got := all[service]; !strings.Contains(got.Error, want) {
			t.Errorf("%s: %+v", service, got)
		}
	}
	if e := all["e"]; len(e.Series) != maxSeries || !e.Truncated {
		t.Errorf("e: %d series", len(e.Series))
	}
}

func TestWrongTargets(t *testing.T) {
	for _, flag := range []string{"a=b", "a=", "=b:1", "a=http://b"} {
		if _, err := NewProcesses(node(t, "--status-targets="+flag), "frontdoor", "abc"); !errors.Is(err, run.ErrUsage) {
			t.Errorf("%q: %v", flag, err)
		}
	}
}
