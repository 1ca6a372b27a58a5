package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/events"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/internal/servers"
	"github.com/portico-platform/portico/test/bench/internal/process"
	"github.com/portico-platform/portico/test/bench/internal/scale"
)

const (
	objects = "/api/v1/namespaces/default/configmaps"
	// textBytes is the size of the text in an object that is changed, and filledBytes in one of the
	// filled objects, of which memory depends.
	textBytes, filledBytes, filled = 1600, 8000, 5000
	// fewWatchers is enough to wake up a front door for every change.
	fewWatchers = 1
	// startTime is how long a suite may take to start or to deliver changes.
	// settleTime is how long a suite rests before it is measured, and restTime before its memory is.
	startTime, settleTime, restTime = 3 * time.Minute, 5 * time.Second, 30 * time.Second
)

// demand is the load of one step of a measurement.
type demand struct {
	changes  float64 // a second, in multiples of -rate
	watchers int     // of all changes, beside one that each front door has
	doors    int     // to which the clients connect
}

// The steps of a calibration, and the load of a check, which differs from them.
var (
	calmStep    = demand{0, 0, 1}
	changeStep  = demand{1, 0, 1}
	watchedStep = demand{1, 200, 1}
	// manyWatchers are idle.
	manyWatchers = demand{0, 1000, 1}
	checkLoad    = demand{1.5, 240, 0} // and all doors
)

// suite is a suite of separate processes.
type suite struct {
	*servers.Server
	work string
}

func startSuite(ctx context.Context, s *settings, doors int) (*suite, error) {
	work, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return nil, err
	}
	server, err := servers.StartProcesses(s.programs, s.permissions, work, doors)
	started := &suite{server, work}
	if err != nil {
		started.stop()
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for _, url := range server.URLs {
		for !answers(waiting, url) {
			if load.Pause(waiting, 100*time.Millisecond) != nil {
				started.stop()
				return nil, fmt.Errorf("%s is not ready within %v", url, startTime)
			}
		}
	}
	return started, nil
}

func (s *suite) stop() {
	if s.Server != nil {
		s.Stop()
	}
	_ = os.RemoveAll(s.work) // a temporary folder
}

// at returns what connections of clients lead to.
func at(url string) wire.Server { return wire.Unverified(url, servers.AdminToken, "scale") }

// answers reports whether a front door is ready and serves the namespace of the objects.
func answers(ctx context.Context, url string) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := load.Dial(ctx, at(url))
	for _, path := range []string{"/readyz", objects} {
		if err == nil {
			_, err = c.Do(wire.Request{Method: http.MethodGet, Path: path}, nil)
		}
	}
	return err == nil
}

// step puts a load on the suite and returns what its processes used. The rates are those that
// were reached, which on a busy machine may be lower than those of the load.
func (s *suite) step(ctx context.Context, d demand, flags *settings) (scale.Step, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	groups, makers, err := s.connect(ctx, d)
	if err != nil {
		return scale.Step{}, err
	}
	if err := load.Pause(ctx, settleTime); err != nil {
		return scale.Step{}, err
	}
	before, began := s.used(), time.Now()
	rate := d.changes * flags.rate
	count := int(rate * flags.duration.Seconds())
	if count == 0 {
		err = load.Pause(ctx, flags.duration)
	} else {
		err = s.change(ctx, makers, groups, rate, count)
	}
	result := scale.Step{Seconds: time.Since(began).Seconds(), Changes: float64(count), Events: float64(count * d.watchers), Watchers: float64(d.watchers), Samples: s.used()}
	for name, after := range result.Samples {
		after.CPU -= before[name].CPU
		after.Use.Bytes -= before[name].Use.Bytes
		result.Samples[name] = after
	}
	return result, err
}

// connect opens the watches, at all front doors that clients use, one more at each front door, and
// the connections of those who make the changes.
func (s *suite) connect(ctx context.Context, d demand) (groups []*load.WatchGroup, makers load.Clients, err error) {
	for i, url := range s.URLs {
		watchers := fewWatchers
		if i < d.doors {
			watchers += d.watchers / d.doors
		}
		opened, err := load.Watching{Server: at(url), Path: objects, Watchers: watchers}.Open(ctx)
		if err != nil {
			return nil, nil, err
		}
		groups = append(groups, opened...)
	}
	for _, url := range s.URLs[:d.doors] {
		const clients = 4
		opened, err := load.Connect(ctx, at(url), clients)
		if err != nil {
			return nil, nil, err
		}
		makers = append(makers, opened...)
	}
	return groups, makers, nil
}

// change creates objects at a rate and waits until all watchers have seen them.
func (s *suite) change(ctx context.Context, makers load.Clients, groups []*load.WatchGroup, rate float64, count int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errors.New("not everything was delivered in time"))
	defer cancel()
	schedule, text := load.NewSchedule(rate, int64(count)), strings.Repeat("x", textBytes)
	return load.Each(ctx, len(groups)+len(makers), func(ctx context.Context, i int) error {
		if i < len(groups) {
			return groups[i].Follow(ctx, count)
		}
		for {
			_, due, more := schedule.Next(ctx)
			if !more {
				return ctx.Err()
			}
			body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"change-"},"data":{%s%d","text":%q}}`, events.Stamp, due.UnixNano(), text)
			if _, err := makers[i-len(groups)].Do(wire.Request{Method: http.MethodPost, Path: objects, Body: body}, nil); err != nil {
				return err
			}
		}
	})
}

// used returns what the processes have used since their start, by name: front doors after the
// first are followers, all together.
func (s *suite) used() map[string]scale.Sample {
	all := map[string]scale.Sample{}
	for i, pid := range s.Processes() {
		name := s.Names()[i]
		if _, ok := all[name]; ok {
			name = scale.Follower
		}
		sum := all[name]
		sum.CPU += process.CPU(pid).Seconds()
		sum.Use.Bytes += float64(process.Moved(pid))
		sum.Memory = float64(process.Resident(pid))
		all[name] = sum
	}
	return all
}

// measureCosts measures a calibration.
func measureCosts(ctx context.Context, s *settings) (scale.Costs, error) {
	started, err := startSuite(ctx, s, 2)
	if err != nil {
		return nil, err
	}
	defer started.stop()
	var c scale.Calibration
	for _, step := range []struct {
		name   string
		demand demand
		result *scale.Step
	}{{"idle", calmStep, &c.Idle}, {"changes", changeStep, &c.Changes}, {"changes to watchers", watchedStep, &c.Watched}} {
		fmt.Fprintln(os.Stderr, "measuring:", step.name)
		if *step.result, err = started.step(ctx, step.demand, s); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	if c.Filled, err = started.fill(ctx); err != nil {
		return nil, fmt.Errorf("filling: %w", err)
	}
	fmt.Fprintln(os.Stderr, "measuring: memory with watchers")
	if _, _, err = started.connect(ctx, manyWatchers); err == nil {
		err = load.Pause(ctx, restTime)
	}
	c.Watching = scale.Step{Watchers: float64(manyWatchers.watchers), Samples: started.used()}
	return c.Costs(), err
}

// fill creates many objects and returns the memory after a rest.
func (s *suite) fill(ctx context.Context) (scale.Step, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Fprintln(os.Stderr, "measuring: memory with objects")
	makers, err := load.Connect(ctx, at(s.URL), 8)
	if err != nil {
		return scale.Step{}, err
	}
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"filled-"},"data":{"text":%q}}`, strings.Repeat("x", filledBytes))
	_, err = makers.Run(ctx, load.Times(filled), func(_ int, c *wire.Conn) (int64, error) {
		return c.Do(wire.Request{Method: http.MethodPost, Path: objects, Body: body}, nil)
	})
	if err != nil {
		return scale.Step{}, err
	}
	err = load.Pause(ctx, restTime)
	return scale.Step{Bytes: filled * filledBytes, Samples: s.used()}, err
}

// check measures suites with several numbers of front doors and prints the model beside them.
func check(ctx context.Context, s *settings, costs scale.Costs, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(table, "front doors\tservice, all replicas\tCPU of a change and its %d events: measured\tmodel\tmodel : measured\tMB/s: measured\tmodel\tmodel : measured\n", checkLoad.watchers)
	for text := range strings.SplitSeq(s.check, ",") {
		doors, err := strconv.Atoi(text)
		if err != nil || doors < 1 {
			return fmt.Errorf("-check: %q is not a number of front doors", text)
		}
		fmt.Fprintln(os.Stderr, "checking:", doors, "front doors")
		step, err := s.checkOne(ctx, doors)
		if err != nil {
			return fmt.Errorf("%d front doors: %w", doors, err)
		}
		compare(table, costs, step, doors)
	}
	return table.Flush()
}

func (s *settings) checkOne(ctx context.Context, doors int) (scale.Step, error) {
	started, err := startSuite(ctx, s, doors)
	if err != nil {
		return scale.Step{}, err
	}
	defer started.stop()
	d := checkLoad
	d.doors = doors
	return started.step(ctx, d, s)
}

// compare prints a row for each service and one for their sum.
func compare(out io.Writer, costs scale.Costs, step scale.Step, doors int) {
	rate := step.Changes / step.Seconds
	var measured, model scale.Use
	row := func(name string, was, is scale.Use) {
		fmt.Fprintf(out, "%d\t%s\t%.0f µs\t%.0f µs\t%.2f\t%.2f\t%.2f\t%.2f\n", doors, name, was.CPU/rate*1e6, is.CPU/rate*1e6, is.CPU/was.CPU, was.Bytes/1e6, is.Bytes/1e6, is.Bytes/was.Bytes)
	}
	for _, n := range costs.Needs(scale.Load{Watchers: step.Watchers, Changes: rate, Selected: 1, Followed: 1}, scale.Replicas{scale.FrontDoor: doors}) {
		sample := step.Samples[n.Service]
		was := scale.Use{CPU: sample.CPU / step.Seconds, Bytes: sample.Use.Bytes / step.Seconds}
		if n.Service == scale.FrontDoor {
			was.CPU += step.Samples[scale.Follower].CPU / step.Seconds
			was.Bytes += step.Samples[scale.Follower].Use.Bytes / step.Seconds
		}
		is := scale.Use{CPU: n.CPU * float64(n.Replicas), Bytes: n.Bytes * float64(n.Replicas)}
		row(n.Service, was, is)
		measured, model = scale.Use{CPU: measured.CPU + was.CPU, Bytes: measured.Bytes + was.Bytes}, scale.Use{CPU: model.CPU + is.CPU, Bytes: model.Bytes + is.Bytes}
	}
	row("all", measured, model)
}
