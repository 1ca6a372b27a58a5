package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// checkTime bounds the question of --check-health: longer than a check may take.
const checkTime = probeTime + time.Second

// statusPage answers for the process on --status-address: health and metrics, for
// a service that has no other HTTP endpoint.
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
	mux.Handle("GET /metrics", promhttp.HandlerFor(m, promhttp.HandlerOpts{}))
	mux.Handle("GET /", h.Handler())
	page.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return page, nil
}

// serve begins before the services start: whoever looks sees a process that is
// live and not ready yet.
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

// stop comes last: a process that drains can be seen draining.
func (p *statusPage) stop(ctx context.Context) {
	if p.listener == nil {
		return
	}
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
}

// checkHealth asks the process with a status address whether it is ready.
func checkHealth(address string) error {
	client := http.Client{Timeout: checkTime, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get((&url.URL{Scheme: "http", Host: address, Path: "/readyz"}).String())
	if err != nil {
		return fmt.Errorf("--check-health: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("--check-health: not ready: %s", answer.Status)
	}
	return nil
}
