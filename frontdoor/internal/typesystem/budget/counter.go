package budget

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/limit"
)

// Counter counts the requests that exceeded a limit.
type Counter struct{ total *prometheus.CounterVec }

// NewCounter returns a Counter with a series for every limit, registered with registry.
func NewCounter(registry prometheus.Registerer) *Counter {
	c := &Counter{prometheus.NewCounterVec(prometheus.CounterOpts{Name: "portico_request_limits_total",
		Help: "Requests that were refused because their work exceeded a limit, by limit."}, []string{"limit"})}
	registry.MustRegister(c.total)
	for _, l := range limit.All() {
		c.total.WithLabelValues(string(l))
	}
	return c
}

// Count counts a request that ended with err, if a limit caused it.
func (c *Counter) Count(err error) {
	if l, ok := limit.Of(err); ok {
		c.total.WithLabelValues(string(l)).Inc()
	}
}
