package connect

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// sessions are the connections that are open. The zero value is ready.
type sessions struct {
	mu     sync.Mutex
	ends   map[*session]context.CancelCauseFunc
	closed bool
	empty  chan struct{} // closed when the last connection has ended after close
}

// session is one connection. It has a size, so that no two have the same address.
type session struct{ _ byte }

var (
	errClosing = errors.New("the server is shutting down")
	errTooLong = errors.New("the connection has reached its maximum duration")
)

// serve runs a connection. Its ctx ends with the client, at the end of its lifetime, and
// when the sessions are closed.
func (s *sessions) serve(r *request.Request, lifetime time.Duration, run func(ctx context.Context) error) error {
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	if lifetime > 0 {
		timer := time.AfterFunc(lifetime, func() { end(errTooLong) })
		defer timer.Stop()
	}
	this := &session{}
	if !s.add(this, end) {
		return services.Unavailable("%v", errClosing)
	}
	defer s.remove(this)
	return run(ctx)
}

// add returns false when the sessions are closed.
func (s *sessions) add(this *session, end context.CancelCauseFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.ends == nil {
		s.ends = map[*session]context.CancelCauseFunc{}
	}
	s.ends[this] = end
	return true
}

func (s *sessions) remove(this *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, this)
	if len(s.ends) == 0 && s.empty != nil {
		close(s.empty)
		s.empty = nil
	}
}

func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ends)
}

func (s *sessions) close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	for _, end := range s.ends {
		end(errClosing)
	}
	if len(s.ends) == 0 {
		s.mu.Unlock()
		return
	}
	s.empty = make(chan struct{})
	empty := s.empty
	s.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}
