// Package plain serves pages of a process in plain HTTP, for those who operate it. It knows
// nothing about the pages.
package plain

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/portico-platform/portico/services/kit/run/accept"
)

// Server serves pages on a separate address.
type Server struct {
	listener net.Listener // nil when there is no address
	server   *http.Server
}

const (
	// maxConnections bounds the connections, which are not counted among those of clients: whoever
	// operates the process gets its pages also while clients take all of theirs.
	maxConnections = 64
	// readTimeout bounds a request with its body, which no page reads: otherwise a client that
	// announces a body and does not send it would keep its connection for ever.
	readTimeout = 10 * time.Second
	// writeTimeout bounds the time from the headers of a request to the end of its response. A page
	// that takes longer, such as a profile, has to extend it with http.ResponseController.
	writeTimeout = 30 * time.Second
	// idleTimeout is how long a connection is kept without a request.
	idleTimeout = time.Minute
	// maxHeaders bounds the headers of a request, in bytes.
	maxHeaders = 16 << 10
)

// Listen listens on an address. Without one the server does nothing.
func Listen(address string, pages http.Handler, log *slog.Logger) (*Server, error) {
	if address == "" {
		return &Server{}, nil
	}
	listener, err := accept.Listen(address, accept.NewSeats(maxConnections), log)
	if err != nil {
		return nil, err
	}
	return &Server{listener, &http.Server{Handler: pages, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaders}}, nil
}

// Address returns the address, or "" if there is none.
func (s *Server) Address() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Serve begins to serve, and returns. An error that ends it is given to fail.
func (s *Server) Serve(fail func(error)) {
	if s.listener == nil {
		return
	}
	go func() {
		if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			fail(err)
		}
	}()
}

// Stop waits for running requests until ctx ends.
func (s *Server) Stop(ctx context.Context) {
	if s.listener == nil {
		return
	}
	if s.server.Shutdown(ctx) != nil {
		_ = s.server.Close()
	}
}
