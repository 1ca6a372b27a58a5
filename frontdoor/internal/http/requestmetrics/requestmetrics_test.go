package requestmetrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// TestSeriesGoWithTheirTypes: the series of deleted types are dropped.
func TestSeriesGoWithTheirTypes(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry, func() float64 { return 0 })
	count := func() (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	m.Observe(&request.Request{Verb: "get", Type: &catalogue.Type{Group: "g", Version: "v1", Resource: "stay"}}, 200, time.Second)
	before := count()
	gone := &catalogue.Type{Group: "g", Version: "v1", Resource: "go"}
	for _, status := range []int{200, 404, 5000, 6000} { // a webhook may return any status
		m.Observe(&request.Request{Verb: "get", Type: gone}, status, time.Second)
	}
	if got := count(); got != before+4 {
		t.Errorf("%d series for one type, want 4", got-before)
	}
	m.Forget(gone)
	if got := count(); got != before {
		t.Errorf("%d series are left", got-before)
	}
}
