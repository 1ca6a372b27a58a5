package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// statusPage serves health and metrics of the process on --status-address.
type statusPage struct {
	listener net.Listener // nil when there is no address
	server   *http.Server
}

func newStatusPage(address string, h *Health, m *prometheus.Registry) (*statusPage, error) {
	page := &statusPage{}
	if address == "" {
		return page, nil
	}
	var err error
	if page.listener, err = net.Listen("tcp", address); err != nil {
		return nil, fmt.Errorf("--status-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.Handle("GET /", healthPages{h, true}.handler())
	page.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return page, nil
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
