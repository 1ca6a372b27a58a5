package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/test/bench/internal/reviewer"
)

// reviewed runs a load of creates while a reviewer decides about each: as an admission service
// over gRPC, if the server has these and grpc is set, otherwise as a webhook. It is an error if
// the server did not ask it.
func reviewed(grpc bool, work func(context.Context, *measurement) error) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		r, err := reviewer.Start()
		if err != nil {
			return err
		}
		defer r.Stop()
		_, missing := m.get(ctx, reviewer.Services)
		registration, err := r.Register(grpc && missing == nil)
		if err != nil {
			return err
		}
		if err := m.make(ctx, registration.Collection, registration.Body); err != nil {
			return fmt.Errorf("registering the admission service: %w", err)
		}
		err = m.whileAsked(ctx, r, work)
		if err := errors.Join(err, m.remove(ctx, registration.Path)); err != nil {
			return err
		}
		return m.probe(ctx, r, false)
	}
}

// whileAsked runs a load of creates once the reviewer is asked.
func (m *measurement) whileAsked(ctx context.Context, r *reviewer.Reviewer, work func(context.Context, *measurement) error) error {
	if err := m.probe(ctx, r, true); err != nil {
		return err
	}
	before := r.Reviews()
	if err := work(ctx, m); err != nil {
		return err
	}
	if asked := r.Reviews() - before; asked < int64(m.settings.creates) {
		return fmt.Errorf("the admission service reviewed %d of %d creates", asked, m.settings.creates)
	}
	return nil
}

// probe creates an object as a dry run until the reviewer is asked about it, or no longer.
func (t *target) probe(ctx context.Context, r *reviewer.Reviewer, asked bool) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	c, err := t.dial(ctx)
	if err != nil {
		return err
	}
	for {
		before := r.Reviews()
		if _, err := c.Do(wire.Request{Method: http.MethodPost, Path: writtenMaps + "?dryRun=All", Body: load.ConfigMap("probe")}, nil); err != nil {
			return fmt.Errorf("waiting for the admission service: %w", err)
		}
		if (r.Reviews() > before) == asked {
			return nil
		}
		if load.Pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("the registration of the admission service has no effect within %v", waitTimeout)
		}
	}
}

// remove deletes an object.
func (t *target) remove(ctx context.Context, path string) error {
	return t.once(ctx, func(c *wire.Conn) error {
		_, err := c.Do(wire.Request{Method: http.MethodDelete, Path: path}, nil)
		return err
	})
}
