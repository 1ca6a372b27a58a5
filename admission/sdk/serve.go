package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// Serve starts the service and serves until ctx ends, then drains. It returns nil after a
// drain, also if it ended reviews that took too long.
func (s *Server) Serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if start := s.admission.service.Start; start != nil {
		if err := start(background); err != nil {
			s.end(background)
			return fmt.Errorf("starting: %w", err)
		}
	}
	s.started.Store(true)
	if s.options.Address != "" && s.options.ClientCAFile == "" {
		s.log.Warn("--client-ca-file is not set: any program on this machine may call this service")
	}
	s.log.Info("serving", "grpc", s.Address, "reviews", s.ReviewAddress, "status", s.StatusAddress)
	failed := make(chan error, len(s.serve))
	var serving sync.WaitGroup
	for _, serve := range s.serve {
		serving.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				failed <- err
			}
		})
	}
	err := s.follow(ctx, failed)
	s.drain(background, err == nil)
	serving.Wait()
	return err
}

// follow keeps the health current until ctx ends or a server fails.
func (s *Server) follow(ctx context.Context, failed <-chan error) error {
	ticks := time.NewTicker(healthEvery)
	defer ticks.Stop()
	for {
		if s.health != nil {
			s.setHealth()
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return fmt.Errorf("serving: %w", err)
		case <-ticks.C:
		}
	}
}

// drain stops serving: first the service is not ready, then it accepts no reviews, and those
// in progress may finish in time.
func (s *Server) drain(ctx context.Context, delay bool) {
	s.draining.Store(true)
	if s.health != nil {
		s.health.Shutdown()
	}
	if delay && s.options.DrainDelay > 0 {
		s.log.Info("draining")
		after := time.NewTimer(s.options.DrainDelay)
		defer after.Stop()
		<-after.C
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.DrainTimeout)
	defer cancel()
	s.end(ctx)
	s.log.Info("stopped")
}

// end ends all servers, and their reviews when ctx ends.
func (s *Server) end(ctx context.Context) {
	var ending sync.WaitGroup
	if s.rpc != nil {
		ending.Go(func() { s.endRPC(ctx) })
	}
	if s.reviews != nil {
		ending.Go(func() {
			if s.reviews.Shutdown(ctx) != nil {
				_ = s.reviews.Close()
			}
		})
	}
	ending.Wait()
	if s.status != nil { // last, so that it shows the drain
		_ = s.status.Close()
	}
	for _, l := range s.listeners {
		_ = l.Close() // those that were never served
	}
}

// endRPC ends the gRPC server. A graceful stop waits for all handlers, also for one that
// ignores its context, so it is abandoned when ctx ends.
func (s *Server) endRPC(ctx context.Context) {
	drained := make(chan struct{})
	go func() {
		s.rpc.GracefulStop()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		s.rpc.Stop()
	}
}
