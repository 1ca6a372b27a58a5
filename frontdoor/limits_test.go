package frontdoor

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/requestmetrics"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/patches"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestLimitsAreCounted: each limit has a metric series from the start, which is
// incremented when a request exceeds it.
func TestLimitsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	d := &door{log: slog.New(slog.DiscardHandler), vocabulary: vocabulary.K8s(), codec: wire.New(wire.Config{Vocabulary: vocabulary.K8s()}), metrics: requestmetrics.New(registry, func() float64 { return 0 })}
	counted := func() map[string]int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]int{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "portico_request_limits_total" {
					values[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
				}
			}
		}
		return values
	}
	before := counted()
	if len(before) != len(limit.All()) {
		t.Fatalf("%d series at the start, want one for each of %v", len(before), limit.All())
	}
	_, deep := wire.DecodeText(wire.JSON, []byte(`{"a":`+strings.Repeat("[", 2000)+strings.Repeat("]", 2000)+`}`))
	_, many := patches.JSON(t.Context(), map[string]any{}, []byte("["+strings.Repeat(`{"op":"test","path":"","value":{}},`, 20_000)+`{"op":"test","path":"","value":{}}]`))
	for what, c := range map[string]struct {
		err  error
		want limit.Limit
	}{
		"depth":              {deep, limit.Depth},
		"operations":         {fmt.Errorf("patching: %w", many), limit.Operations},
		"none":               {nil, ""},
		"a Status":           {services.TooLarge("too large"), ""},
		"some other failure": {errors.New("a"), ""},
	} {
		t.Run(what, func(t *testing.T) {
			before := counted()
			recorder := httptest.NewRecorder()
			handle := d.recovered(func(http.ResponseWriter, *request.Request) error { return c.err })
			_ = handle(recorder, &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), Verb: "create"})
			after := counted()
			for name, n := range after {
				want := before[name]
				if name == string(c.want) {
					want++
				}
				if n != want {
					t.Errorf("%s: %d, want %d", name, n, want)
				}
			}
			if c.err != nil && recorder.Code != int(services.AsStatus(c.err).Code) {
				t.Errorf("answered %d, want %d", recorder.Code, services.AsStatus(c.err).Code)
			}
		})
	}
}
