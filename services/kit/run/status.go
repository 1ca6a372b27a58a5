package run

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/portico-platform/portico/services/kit/run/plain"
	"github.com/portico-platform/portico/services/kit/run/routes"
	"github.com/portico-platform/portico/services/kit/run/slis"
)

// listenForStatus makes the server of the health and metrics of a process. It serves before the
// services start, so that the process is live and not ready while it starts, and stops last, so
// that both are available while the process drains.
func listenForStatus(address string, n *Node) (*plain.Server, error) {
	router := routes.New()
	n.routes(router, true)
	server, err := plain.Listen(address, router, n.Log)
	if err != nil {
		return nil, fmt.Errorf("--status-address: %w", err)
	}
	return server, nil
}

// Routes adds the health checks and metrics of the process to a router for clients of the
// API. Metrics have exemplars in the OpenMetrics format.
func (n *Node) Routes(r chi.Router) { n.routes(r, false) }

func (n *Node) routes(r chi.Router, notes bool) {
	healthPages{n.Health, notes}.routes(r)
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(n.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	if slis.Served(n.Release) {
		r.Method(http.MethodGet, slis.Path, n.Health.outcomes)
	}
}
