package main

import (
	"context"
	"os"
	"time"

	"github.com/portico-platform/portico/deploy/bench/internal/figures"
)

const (
	// sampling is how often a server's memory is looked at during a measurement.
	sampling = 5 * time.Millisecond
	// A server is quiet when it uses less than a twentieth of a core, and a
	// measurement waits for that for a while.
	quietFor, quietBelow, quietWithin = 200 * time.Millisecond, 10 * time.Millisecond, 20 * time.Second
)

// measurement is one run of a scenario on one server.
type measurement struct {
	*target
	settings *settings
	result   figures.Result
}

// measure runs a load and looks at the server's processes meanwhile. What has to
// be made ready for the load is made before, and does not count.
func (m *measurement) measure(ctx context.Context, load func() (figures.Samples, error)) error {
	if err := m.quiet(ctx); err != nil {
		return err
	}
	peak := m.watchMemory()
	began, server, own, machine := time.Now(), cpu(m.pids...), cpu(os.Getpid()), busy()
	s, err := load()
	r := figures.Result{Samples: s, Elapsed: time.Since(began), Server: cpu(m.pids...) - server, Load: cpu(os.Getpid()) - own}
	r.Others = max(0, busy()-machine-r.Server-r.Load)
	r.Memory, r.AtRest = peak(), m.atRest
	m.result = r
	return err
}

// quiet waits until the server has done what earlier requests left it to do. One
// that never comes to rest is measured as it is.
func (t *target) quiet(ctx context.Context) error {
	for end := time.Now().Add(quietWithin); time.Now().Before(end); {
		before := cpu(t.pids...)
		if err := pause(ctx, quietFor); err != nil {
			return err
		}
		if cpu(t.pids...)-before < quietBelow {
			return nil
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watchMemory begins to sample the memory; what it returns ends that and tells the
// highest sum seen.
func (t *target) watchMemory() (peak func() int64) {
	stop, highest := make(chan struct{}), make(chan int64)
	go func() {
		ticks := time.NewTicker(sampling)
		defer ticks.Stop()
		most := resident(t.pids...)
		for {
			select {
			case <-ticks.C:
				most = max(most, resident(t.pids...))
			case <-stop:
				highest <- max(most, resident(t.pids...))
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-highest
	}
}
