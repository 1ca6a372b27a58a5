package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"

	"github.com/portico-platform/portico/internal/servers"
)

// launch starts a server with its data in a folder; it continues with what is there.
type launch func(work string) (*servers.Server, error)

// starters returns functions that start the targets, in the order of measurement.
func starters(s *settings) (all []func(context.Context) (*target, error)) {
	add := func(name, folder string, pods int, begin launch) {
		all = append(all, func(ctx context.Context) (*target, error) {
			t := newTarget(name, "", pods)
			t.begin, t.work = begin, filepath.Join(s.work, folder)
			return t, t.start(ctx)
		})
	}
	allInOne := func(program string) launch {
		return func(work string) (*servers.Server, error) { return servers.StartPortico(program, work) }
	}
	apart := func(programs string) launch {
		return func(work string) (*servers.Server, error) {
			return servers.StartProcesses(programs, s.permissions, work, 1)
		}
	}
	if s.processes != "" {
		add("", "", s.pods, apart(s.processes))
	}
	if s.processes != "" && s.before != "" {
		add("before", "before", s.pods, apart(s.before))
	}
	if s.etcdApart {
		add("etcd apart", "etcd-apart", s.pods, func(work string) (*servers.Server, error) {
			return servers.StartWithEtcd(s.portico, s.processes, work)
		})
	}
	if s.portico != "" {
		add("", "", s.pods, allInOne(s.portico))
	}
	if s.beside > 0 {
		add(fmt.Sprintf("%d pods", s.beside), "beside", s.beside, allInOne(s.portico))
	}
	if s.processes == "" && s.before != "" {
		add("before", "before", s.pods, allInOne(s.before))
	}
	if s.peer != "" {
		add("", "", s.pods, func(work string) (*servers.Server, error) { return servers.StartPeer(s.peer, work) })
	}
	if s.url != "" {
		all = append(all, func(ctx context.Context) (*target, error) {
			t := newTarget("url", s.url, s.pods)
			t.token, t.pids = s.token, s.pids
			return t, t.await(ctx)
		})
	}
	return all
}

// start starts the server of a new target and waits until it is ready.
func (t *target) start(ctx context.Context) error {
	if err := t.launch(); err != nil {
		return err
	}
	if err := t.await(ctx); err != nil {
		return err
	}
	t.version = cmp.Or(t.server.Version, t.version)
	return nil
}

// launch starts the target's server.
func (t *target) launch() error {
	server, err := t.begin(t.work)
	if server != nil {
		t.name, t.url = cmp.Or(t.name, server.Name), server.URL
		t.server, t.pids, t.parts = server, server.Processes(), server.Names()
	}
	return err
}
