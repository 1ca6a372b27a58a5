package command

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/load/wire"
	"github.com/portico-platform/portico/internal/progress"
)

const (
	// drain is how long watchers go on after the last request.
	drain = time.Second
	// tick is the interval in which the progress of the time is recorded.
	tick = 100 * time.Millisecond
)

// loading is one run.
type loading struct {
	*plan
	space   *space
	server  wire.Server
	version string
	figures *figures
	errs    io.Writer
}

// prepare finds the server and its resources. It changes nothing.
func prepare(config *rest.Config, p *plan, errs io.Writer) (*loading, error) {
	server, err := wire.FromConfig(config)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, err
	}
	s := &space{name: p.namespace, run: rand.String(8), client: client, objects: objects}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovery.NewDiscoveryClient(client.Discovery().RESTClient())))
	if s.kinds, err = p.resolve(mapper, s.run); err != nil {
		return nil, err
	}
	return &loading{plan: p, space: s, server: server, version: version.GitVersion, figures: newFigures(), errs: errs}, nil
}

// execute makes the load and returns what it measured. If ctx ends meanwhile, that is what was measured
// until then; it is an error only before the first request.
func (l *loading) run(ctx context.Context) (*report, error) {
	connected, disconnect := context.WithCancel(ctx)
	defer disconnect()
	workers := make([]*worker, l.clients)
	for i := range workers {
		workers[i] = &worker{loading: l, id: i, limit: (l.objects + i) / l.clients, dial: func() (*wire.Conn, error) { return load.Dial(connected, l.server) }}
	}
	if err := l.fill(ctx, workers); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	groups, err := l.watch(watching)
	if err != nil {
		return nil, err
	}
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		_ = load.Each(watching, len(groups), func(ctx context.Context, i int) error { return groups[i].Follow(ctx, -1) }) // until stop
	}()
	began := time.Now()
	l.send(ctx, workers)
	elapsed := time.Since(began)
	if l.watchers > 0 {
		_ = load.Pause(ctx, drain)
	}
	stop()
	<-followed
	return l.report(groups, elapsed, ctx.Err() != nil), nil
}

// fill creates the objects that the load begins with.
func (l *loading) fill(ctx context.Context, workers []*worker) error {
	bar := progress.Start(l.errs, "objects", int64(l.filled()), nil)
	defer bar.End()
	return load.Each(ctx, len(workers), func(ctx context.Context, i int) error {
		w := workers[i]
		for len(w.objects) < (l.filled()+i)/l.clients {
			if err := w.prepare(ctx); err != nil {
				return err
			}
			bar.Add(1)
		}
		return nil
	})
}

// watch opens the watches, which are divided among the resources.
func (l *loading) watch(ctx context.Context) (all []*load.WatchGroup, err error) {
	for i, k := range l.space.kinds {
		w := load.Watching{Server: l.server, Path: k.path, Watchers: (l.watchers + i) / len(l.space.kinds), Labels: l.labels, Reconnect: true, Record: l.figures.delivered.Record}
		groups, err := w.Open(ctx)
		if err != nil {
			return nil, fmt.Errorf("opening the watches: %w", err)
		}
		all = append(all, groups...)
	}
	return all, nil
}

// send sends requests until the time is over or ctx ends. Requests in flight at the end of the time
// are completed.
func (l *loading) send(ctx context.Context, workers []*worker) {
	during, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	bar := progress.Start(l.errs, "load", int64(l.duration), func(n int64) string { return time.Duration(n).Round(time.Second).String() })
	defer bar.End()
	go func() {
		for began := time.Now(); load.Pause(during, tick) == nil; {
			bar.Set(int64(time.Since(began)))
		}
	}()
	schedule, verbs := load.NewSchedule(l.rate, 0), newMix(l.verbs)
	_ = load.Each(ctx, len(workers), func(ctx context.Context, i int) error { // errors are figures
		for {
			turn, due, more := schedule.Next(during)
			if !more {
				return nil
			}
			workers[i].operate(ctx, verbs.verb(turn), due)
		}
	})
}
