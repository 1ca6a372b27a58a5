package listener

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/portico-platform/portico/services/kit/run"
)

// Serving says whether HTTPS is served. Its health check must be registered before those of
// other services: /readyz that excludes these fails until HTTPS is served.
type Serving struct{ begun atomic.Bool }

// Serve serves HTTPS at an open port until the server is shut down. The check then passes.
func (s *Serving) Serve(server *http.Server, port net.Listener) error {
	s.begun.Store(true)
	if err := server.Serve(port); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Check returns the health check.
func (s *Serving) Check() run.Check {
	return run.Check{Name: "serving", Probe: func(context.Context) error {
		if !s.begun.Load() {
			return errors.New("HTTPS is not served yet")
		}
		return nil
	}}
}
