package main

import (
	"context"
	"os"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/test/bench/internal/figures"
	"github.com/portico-platform/portico/test/bench/internal/process"
)

const (
	// A server is idle when it uses less than quietBelow of CPU time in quietFor. A
	// measurement waits for that for at most quietWithin.
	quietFor, quietBelow, quietWithin = 200 * time.Millisecond, 10 * time.Millisecond, 20 * time.Second
)

// measurement is one run of a scenario on one server.
type measurement struct {
	*target
	settings *settings
	result   figures.Result
}

// measure runs a load and measures the server's processes meanwhile. Preparations of the
// load are made before and are not measured.
func (m *measurement) measure(ctx context.Context, work func() (load.Samples, error)) error {
	if err := m.quiet(ctx); err != nil {
		return err
	}
	peak := process.WatchMemory(m.pids...)
	parts := m.used()
	began, server, own, machine := time.Now(), process.CPU(m.pids...), process.CPU(os.Getpid()), process.Busy()
	s, err := work()
	r := figures.Result{Samples: s, Elapsed: time.Since(began), Server: process.CPU(m.pids...) - server, Load: process.CPU(os.Getpid()) - own}
	r.Others = max(0, process.Busy()-machine-r.Server-r.Load)
	for i, after := range m.used() {
		r.Parts = append(r.Parts, after.Since(parts[i]))
	}
	r.Memory, r.AtRest = peak(), m.atRest
	m.result = r
	return err
}

// used returns what each process whose name is known has used and done since its start.
func (t *target) used() (parts []figures.Part) {
	for i, name := range t.parts {
		parts = append(parts, figures.Part{Name: name, CPU: process.CPU(t.pids[i]), SystemCalls: process.SystemCalls(t.pids[i]), Calls: calls(t.server.StatusAddress(name))})
	}
	return parts
}

// quiet waits until the server has finished background work of earlier requests, for at
// most quietWithin.
func (t *target) quiet(ctx context.Context) error {
	for end := time.Now().Add(quietWithin); time.Now().Before(end); {
		before := process.CPU(t.pids...)
		if err := load.Pause(ctx, quietFor); err != nil {
			return err
		}
		if process.CPU(t.pids...)-before < quietBelow {
			return nil
		}
	}
	return nil
}
