// Package command is portico load: a load on any API server, with the rights of a kubeconfig, in a separate
// namespace that it empties at the end.
package command

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/kit/run"
)

// Limits of one run.
const (
	maxClients, maxWatchers, maxLabels = 1000, 20_000, 10_000
	maxObjects                         = 100_000
	maxRate                            = 100_000
	maxDuration                        = 24 * time.Hour
)

// Session is what the command shares with the other tools.
type Session struct {
	// Config returns the configuration of the client.
	Config func() (*rest.Config, error)
	// Namespace returns the value of the flag --namespace.
	Namespace func() string
	// Print writes a value as JSON, or calls text.
	Print func(value any, text func(io.Writer) error) error
}

// plan is the load that the flags describe.
type plan struct {
	namespace         string
	verbs             []weighted
	kinds, files      []string
	clients, watchers int
	labels, objects   int
	rate              float64
	duration          time.Duration
}

// New returns the command.
func New(s Session) *cobra.Command {
	p := &plan{}
	var verbs string
	c := &cobra.Command{
		Use: "load -n NAMESPACE", Short: "Sends requests to an API server at a rate and measures their latencies", Args: cobra.NoArgs,
		Long: "Sends requests to an API server at a rate and measures their latencies, and those of changes on their way to watchers. It works in a namespace " +
			"that does not exist, which it creates and deletes, or in one with the label " + ownLabel + "=" + allowed + ", where it deletes its objects. Ctrl-C ends " +
			"it early: it prints its results and cleans up. Latencies are measured from the time at which the rate has a request due.",
		Example: "  portico load -n load-test\n  portico load -n load-test --verbs=create=1,delete=1 --kinds=pods,secrets --rate=500 --clients=32 --watchers=200 --labels=10\n" +
			"  portico load -n load-test -f widget.yaml --verbs=get=9,patch=1 --rate=0 --duration=1m -o json",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if p.verbs, err = parseVerbs(verbs); err != nil {
				return err
			}
			p.namespace = s.Namespace()
			if err := p.validate(); err != nil {
				return err
			}
			return execute(c.Context(), s, p, c.ErrOrStderr())
		},
	}
	fs := c.Flags()
	fs.StringVar(&verbs, "verbs", "get=6,list=1,create=1,patch=1,delete=1", "`verbs` with their shares: get, list, create, update, patch, apply, delete")
	fs.StringSliceVar(&p.kinds, "kinds", []string{"configmaps"}, "`resources` to write and read: configmaps, secrets, pods (which are never scheduled), deployments (of no replicas)")
	fs.StringSliceVarP(&p.files, "filename", "f", nil, "`files` with an object of another resource each, in YAML or JSON, to make copies of; --kinds is ignored")
	fs.IntVar(&p.clients, "clients", 16, "number of connections that send requests")
	fs.Float64Var(&p.rate, "rate", 100, "requests a second of all clients together; 0: as fast as they are answered")
	fs.DurationVar(&p.duration, "duration", 30*time.Second, "how long requests are sent")
	fs.IntVar(&p.objects, "objects", 1000, "maximum number of objects at a time")
	fs.IntVar(&p.watchers, "watchers", 0, "number of watchers of the objects")
	fs.IntVar(&p.labels, "labels", 0, "number of label values, of which each watcher selects one; 0: each watches all objects")
	return c
}

// validate returns an error that names the wrong flag.
func (p *plan) validate() error {
	for _, n := range []struct {
		name              string
		value, least, max int
	}{
		{"clients", p.clients, 1, maxClients}, {"objects", p.objects, 1, maxObjects},
		{"watchers", p.watchers, 0, maxWatchers}, {"labels", p.labels, 0, maxLabels},
	} {
		if n.value < n.least || n.value > n.max {
			return run.Usagef("--%s: %d is not between %d and %d", n.name, n.value, n.least, n.max)
		}
	}
	switch {
	case p.namespace == "":
		return run.Usagef("--namespace: specify one that does not exist yet; load creates it, and deletes it at the end")
	case p.rate < 0 || p.rate > maxRate:
		return run.Usagef("--rate: %v is not between 0 and %d", p.rate, maxRate)
	case p.duration <= 0 || p.duration > maxDuration:
		return run.Usagef("--duration: %v is not between 0 and %v", p.duration, maxDuration)
	case p.objects < p.clients:
		return run.Usagef("--objects: %d clients need at least as many objects, not %d", p.clients, p.objects)
	case len(p.kinds) == 0 && len(p.files) == 0:
		return run.Usagef("--kinds: specify a resource")
	}
	return nil
}

// execute makes the load, prints what it measured, and cleans up.
func execute(ctx context.Context, s Session, p *plan, errs io.Writer) (err error) {
	config, err := s.Config()
	if err != nil {
		return err
	}
	l, err := prepare(config, p, errs)
	if err != nil {
		return err
	}
	if err := l.space.claim(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.space.clean(ctx, errs)) }()
	r, err := l.run(ctx)
	if err != nil {
		return err
	}
	return s.Print(r, r.write)
}
