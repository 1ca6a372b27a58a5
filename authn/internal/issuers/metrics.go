package issuers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services/kit/configfile"
)

// Metrics are those of the issuers of one process, with the names of Kubernetes.
type Metrics struct {
	latency *prometheus.HistogramVec
	fetched *prometheus.GaugeVec
	keys    *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registry *prometheus.Registry) *Metrics {
	const prefix = "apiserver_authentication_jwt_authenticator_"
	m := &Metrics{
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "latency_seconds",
			Help:    "Duration of the verification of ID tokens that the front door has not cached, by result and hash of the issuer.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"result", "jwt_issuer_hash"}),
		fetched: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "jwks_fetch_last_timestamp_seconds",
			Help: "When the keys of an issuer were last requested, by result and hash of the issuer."}, []string{"result", "jwt_issuer_hash"}),
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "jwks_fetch_last_key_set_info",
			Help: "Hash of the keys that an issuer last returned."}, []string{"jwt_issuer_hash", "hash"}),
	}
	registry.MustRegister(m.latency, m.fetched, m.keys)
	return m
}

func (m *Metrics) authenticated(issuer string, err error, took time.Duration) {
	m.latency.WithLabelValues(result(err == nil), configfile.Hash([]byte(issuer))).Observe(took.Seconds())
}

// keysRequested records a request for the keys; body is nil if it failed.
func (m *Metrics) keysRequested(issuer string, body []byte) {
	of := configfile.Hash([]byte(issuer))
	m.fetched.WithLabelValues(result(body != nil), of).SetToCurrentTime()
	if body != nil {
		m.keys.DeletePartialMatch(prometheus.Labels{"jwt_issuer_hash": of})
		m.keys.WithLabelValues(of, configfile.Hash(body)).Set(1)
	}
}

// Forget removes the metrics of an issuer that is no longer used.
func (m *Metrics) Forget(issuer string) {
	of := prometheus.Labels{"jwt_issuer_hash": configfile.Hash([]byte(issuer))}
	m.latency.DeletePartialMatch(of)
	m.fetched.DeletePartialMatch(of)
	m.keys.DeletePartialMatch(of)
}

func result(success bool) string {
	if success {
		return "success"
	}
	return "failure"
}
