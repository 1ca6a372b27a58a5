package forwarding

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of Kubernetes.
type metrics struct{ forwarded, failed, unread *prometheus.CounterVec }

func newMetrics(to prometheus.Registerer) *metrics {
	m := &metrics{
		forwarded: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_rerouted_request_total",
			Help: "Requests for types that this front door does not serve, forwarded to another one, by status code and type."}, []string{"code", "group", "version", "resource"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_peer_proxy_errors_total",
			Help: "Requests that could not be forwarded, by cause and type: endpoint_resolution if no other front door could be reached, proxy_transport if the connection failed later."},
			[]string{"type", "group", "version", "resource"}),
		unread: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_peer_discovery_sync_errors_total",
			Help: "Failed requests for the types that other front doors serve, by cause."}, []string{"type"}),
	}
	to.MustRegister(m.forwarded, m.failed, m.unread)
	return m
}
