package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/portico-platform/portico/services/kit/run/routes"
)

// statusPage serves health and metrics of the process on --status-address.
type statusPage struct {
	listener net.Listener // nil when there is no address
	server   *http.Server
}

func newStatusPage(address string, n *Node) (*statusPage, error) {
	page := &statusPage{}
	if address == "" {
		return page, nil
	}
	var err error
	if page.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("--status-address: %w", err)
	}
	router := routes.New()
	n.routes(router, true)
	page.server = &http.Server{Handler: router, ReadHeaderTimeout: 10 * time.Second}
	return page, nil
}

// Routes adds the health checks and metrics of the process to a router for clients of the
// API. Metrics have exemplars in the OpenMetrics format.
func (n *Node) Routes(r chi.Router) { n.routes(r, false) }

func (n *Node) routes(r chi.Router, notes bool) {
	healthPages{n.Health, notes}.routes(r)
	r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(n.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}))
}

// serve is called before the services start, so that the process is live and not ready
// while it starts.
func (p *statusPage) serve(fail func(error)) {
	if p.listener == nil {
		return
	}
	go func() {
		if err := p.server.Serve(p.listener); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serving on --status-address: %w", err))
		}
	}()
}

// stop is called last, so that health and metrics are available while the process drains.
func (p *statusPage) stop(ctx context.Context) {
	if p.listener == nil {
		return
	}
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
}
