package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/internal/servers"
	"github.com/portico-platform/portico/test/bench/internal/figures"
	"github.com/portico-platform/portico/test/bench/internal/floor"
	"github.com/portico-platform/portico/test/bench/internal/process"
)

// errRunning is the error of measurements that start a server, for one at -url.
var errRunning = errors.New("a server that was not started here cannot be started again")

// restart stops the server and starts it with its data. The one operation lasts from the start
// of the processes to the first answer that they are ready; so does the CPU time.
func restart(ctx context.Context, m *measurement) error {
	if m.server == nil {
		return errRunning
	}
	if err := m.quiet(ctx); err != nil {
		return err
	}
	m.server.Stop()
	return m.firstAnswer(ctx, m.target)
}

// startEmpty starts another server of the same kind, with no data, and stops it.
func startEmpty(ctx context.Context, m *measurement) error {
	return m.apart(func(other *target) error { return m.firstAnswer(ctx, other) })
}

// apart calls use with another server of the same kind, with no data, which use starts. It stops it.
func (m *measurement) apart(use func(other *target) error) error {
	if m.server == nil {
		return errRunning
	}
	folder, err := os.MkdirTemp(m.settings.work, "empty-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	other := newTarget(m.name, "", 0)
	other.begin, other.work = m.begin, folder
	defer other.stop()
	return use(other)
}

// firstAnswer measures the start of a target.
func (m *measurement) firstAnswer(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	began, own, machine := time.Now(), process.CPU(os.Getpid()), process.Busy()
	if err := t.launch(); err != nil {
		return err
	}
	if err := t.ready(ctx, 5*time.Millisecond); err != nil {
		return err
	}
	r := figures.Result{Elapsed: time.Since(began), Server: process.CPU(t.pids...), Load: process.CPU(os.Getpid()) - own}
	r.Samples = load.Samples{Operations: 1, Latencies: []time.Duration{r.Elapsed}}
	r.Others = max(0, process.Busy()-machine-r.Server-r.Load)
	r.Memory = process.Resident(t.pids...)
	m.result = r
	return nil
}

// afterEverything reports the memory of the server at rest, after all measurements before.
func afterEverything(ctx context.Context, m *measurement) error {
	if err := load.Pause(ctx, m.settings.idlePeriod); err != nil {
		return err
	}
	err := m.measure(ctx, func() (load.Samples, error) { return load.Samples{}, nil })
	m.result.Memory = process.Resident(m.pids...)
	return err
}

// besideFloor runs a load of lists, and then the same load on a plain TLS server that sends the
// same bytes from memory. The result has figures of both.
func besideFloor(path string, work func(context.Context, *measurement) error) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		if err := work(ctx, m); err != nil {
			return err
		}
		folder, err := os.MkdirTemp(m.settings.work, "floor-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		body, err := m.get(ctx, path)
		if err != nil {
			return err
		}
		plain, err := startFloor(ctx, folder, body)
		if plain != nil {
			defer plain.stop()
		}
		if err != nil {
			return fmt.Errorf("the plain TLS server: %w", err)
		}
		plain.pods = m.pods
		beside := &measurement{target: plain, settings: m.settings}
		if err := work(ctx, beside); err != nil {
			return fmt.Errorf("the plain TLS server: %w", err)
		}
		m.result.Floor = &beside.result
		return nil
	}
}

// startFloor starts the plain TLS server with its response, and waits until it sends that.
func startFloor(ctx context.Context, folder string, body []byte) (*target, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "list")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	t := newTarget("", "", 0)
	t.begin, t.work = func(work string) (*servers.Server, error) {
		return servers.StartFloor(program, floor.Command, file, work)
	}, folder
	if err := t.launch(); err != nil {
		return t, err
	}
	waiting, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	return t, t.answers(waiting, 20*time.Millisecond, pods)
}

// fsyncTime returns the median time of an append of 4 KiB to a file in a folder with fsync.
func fsyncTime(folder string) (time.Duration, error) {
	file, err := os.CreateTemp(folder, "fsync-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	page, times := make([]byte, 4<<10), figures.Result{}
	for range 200 {
		began := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		times.Latencies = append(times.Latencies, time.Since(began))
	}
	return times.MedianLatency(), nil
}

// besideFsync runs a load of writes and records the time of an fsync on the same disk.
func besideFsync(work func(context.Context, *measurement) error) func(context.Context, *measurement) error {
	return func(ctx context.Context, m *measurement) error {
		took, err := fsyncTime(m.settings.work)
		if err != nil {
			return err
		}
		err = work(ctx, m)
		m.result.Fsync = took
		return err
	}
}

// answers waits until a GET of each path succeeds.
func (t *target) answers(ctx context.Context, pause time.Duration, paths ...string) error {
	for {
		var failed error
		for _, path := range paths {
			failed = errors.Join(failed, t.once(ctx, func(c *wire.Conn) error {
				_, err := c.Do(wire.Request{Method: "GET", Path: path}, nil)
				return err
			}))
		}
		if failed == nil {
			return nil
		}
		if load.Pause(ctx, pause) != nil {
			return fmt.Errorf("%s does not answer within %v: %w", t.name, waitTimeout, failed)
		}
	}
}
