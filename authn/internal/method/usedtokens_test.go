package method

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestUsedTokens(t *testing.T) {
	registry := prometheus.NewRegistry()
	used, now := newUsedTokens(registry), time.Now()
	used.count(true, time.Time{}, now)
	used.count(false, time.Time{}, now)
	for range 2 {
		used.count(false, now.Add(-time.Second), now)
	}
	for range 3 {
		used.count(false, now.Add(time.Second), now)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
	}
	for name, want := range map[string]float64{"serviceaccount_legacy_tokens_total": 1, "serviceaccount_stale_tokens_total": 2, "serviceaccount_valid_tokens_total": 3} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
