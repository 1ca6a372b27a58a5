package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/floor"
	"github.com/portico-platform/portico/deploy/internal/load"
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
	if s.before != "" {
		all = append(all, func(ctx context.Context) (*target, error) {
			t, err := start(ctx, servers.StartPortico, s.before, filepath.Join(work, "before"))
			if t != nil {
				t.name = "before"
			}
			return t, err
		})
	}
	if s.floor {
		all = append(all, func(context.Context) (*target, error) { return startFloor(work) })
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

// floorList is the file with the list of the plain TLS server.
const floorList = "list"

// startFloor starts the plain TLS server. It has a list after record.
func startFloor(work string) (*target, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, floorList)
	server, err := servers.StartFloor(program, floor.Command, file, work)
	if server == nil {
		return nil, err
	}
	t := newTarget(server.Name, server.URL)
	t.server, t.pids, t.parts = server, server.Processes(), server.Names()
	t.fixed = true
	return t, err
}

// record gives the plain TLS server the list of another one, and waits until it sends it.
func (t *target) record(ctx context.Context, other *target, work string) error {
	body, err := other.get(ctx, pods)
	if err == nil {
		err = os.WriteFile(filepath.Join(work, floorList), body, 0o600)
	}
	for err == nil {
		if _, missing := t.get(ctx, pods); missing == nil {
			return nil
		}
		err = load.Pause(ctx, 100*time.Millisecond)
	}
	return err
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
