package main

import (
	"cmp"
	"context"

	"github.com/portico-platform/portico/deploy/internal/servers"
)

// starters returns functions that start the targets, in the order of measurement.
func starters(s *settings, work string) (all []func(context.Context) (*target, error)) {
	if s.processes != "" {
		all = append(all, func(ctx context.Context) (*target, error) {
			return start(ctx, func(programs, work string, _ ...string) (*servers.Server, error) {
				return servers.StartProcesses(programs, s.permissions, work)
			}, s.processes, work)
		})
	}
	if s.portico != "" {
		all = append(all, func(ctx context.Context) (*target, error) { return start(ctx, servers.StartPortico, s.portico, work) })
	}
	if s.peer != "" {
		all = append(all, func(ctx context.Context) (*target, error) { return start(ctx, servers.StartPeer, s.peer, work) })
	}
	if s.url != "" {
		all = append(all, func(ctx context.Context) (*target, error) {
			t := newTarget("url", s.url)
			t.token, t.pids = s.token, s.pids
			return t, t.await(ctx)
		})
	}
	return all
}

// start starts a server and waits until it is ready.
func start(ctx context.Context, begin func(program, work string, flags ...string) (*servers.Server, error), program, work string) (*target, error) {
	server, err := begin(program, work)
	if server == nil {
		return nil, err
	}
	t := newTarget(server.Name, server.URL)
	t.server, t.pids, t.parts = server, server.Processes(), server.Names()
	if err != nil {
		return t, err
	}
	if err := t.await(ctx); err != nil {
		return t, err
	}
	t.version = cmp.Or(server.Version, t.version)
	return t, nil
}
