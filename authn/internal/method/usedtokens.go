package method

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// usedTokens counts accepted service account tokens, with the metric names of Kubernetes.
// Requests whose result the front door has cached are not counted.
type usedTokens struct{ legacy, stale, valid prometheus.Counter }

func newUsedTokens(registry *prometheus.Registry) usedTokens {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "serviceaccount", Name: name, Help: help})
		if registry != nil {
			registry.MustRegister(c)
		}
		return c
	}
	return usedTokens{
		legacy: counter("legacy_tokens_total", "Service account tokens of Secrets that were accepted."),
		stale:  counter("stale_tokens_total", "Extended service account tokens that were accepted after the time at which the client should have replaced them."),
		valid:  counter("valid_tokens_total", "Extended service account tokens that were accepted before that time."),
	}
}

// count counts a token. Those that are neither of a Secret nor extended are not counted.
func (u usedTokens) count(legacy bool, warnAfter, now time.Time) {
	switch {
	case legacy:
		u.legacy.Inc()
	case warnAfter.IsZero():
	case now.After(warnAfter):
		u.stale.Inc()
	default:
		u.valid.Inc()
	}
}
