// Package flowcontrol keeps what divides requests fairly up to date: it follows FlowSchemas and
// PriorityLevelConfigurations, restores the mandatory and the suggested ones, and notes in the
// status of a FlowSchema whether its level exists. Its writes skip authorization and admission. Any
// number of replicas may run at the same time. It serves "Limits" of the specification.
package flowcontrol

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// rest is the minimum time between two passes. It bounds the writes if a client keeps changing
	// what is restored.
	rest = time.Second
	// firstRetry and slowestRetry bound the backoff after a failed pass.
	firstRetry, slowestRetry = 500 * time.Millisecond, 10 * time.Second
)

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Source     changes.Source
	Store      services.Reader
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	Shares *fairness.Shares
	// Defaults are the objects that are restored.
	Defaults []Default
	Log      *slog.Logger
}

// Keeper keeps the objects and Shares up to date.
type Keeper struct {
	Config
	levels  *changes.Mirror[stored[fairness.Level]]
	flows   *changes.Mirror[stored[fairness.Flow]]
	wanted  []wanted
	changed chan struct{}
	now     func() time.Time
}

// stored is an object as it is stored.
type stored[T any] struct {
	spec T
	meta
}

// meta is what decides whether an object is restored, and its condition.
type meta struct {
	Metadata struct {
		Name        string            `json:"name"`
		Generation  int64             `json:"generation"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

// New returns a Keeper. The caller must call Run.
func New(c Config) (*Keeper, error) {
	k := &Keeper{Config: c, changed: make(chan struct{}, 1), now: time.Now}
	for _, d := range c.Defaults {
		w, err := d.parse()
		if err != nil {
			return nil, err
		}
		k.wanted = append(k.wanted, w)
	}
	k.levels = mirror(k, levelKind, fairness.ParseLevel)
	k.flows = mirror(k, flowKind, fairness.ParseFlow)
	return k, nil
}

func mirror[T any](k *Keeper, kind string, parse func([]byte) (T, error)) *changes.Mirror[stored[T]] {
	return changes.NewMirror(changes.MirrorConfig[stored[T]]{Source: k.Source, Store: k.Store, GroupResource: typeOf(k.Vocabulary, kind), Log: k.Log, Changed: k.learn, Keep: true,
		Decode: func(o services.Object) (s stored[T], err error) {
			if s.spec, err = parse(o.JSON); err != nil {
				return s, err
			}
			s.meta, err = parseMeta(o.JSON)
			return s, err
		}})
}

const (
	levelKind = "PriorityLevelConfiguration"
	flowKind  = "FlowSchema"
)

func typeOf(v vocabulary.Vocabulary, kind string) resource.GroupResource {
	return resource.GroupResource{Group: v.Group("flowcontrol.apiserver."), Resource: strings.ToLower(kind) + "s"}
}

// Ready waits until all objects are known. It returns the error of ctx.
func (k *Keeper) Ready(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{k.levels.Ready(), k.flows.Ready()} {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.learn()
	return nil
}

// learn applies the stored objects once both types are known.
func (k *Keeper) learn() {
	for _, ready := range []<-chan struct{}{k.levels.Ready(), k.flows.Ready()} {
		select {
		case <-ready:
		default:
			return
		}
	}
	var levels []fairness.Level
	for _, l := range k.levels.List("") {
		levels = append(levels, l.spec)
	}
	var flows []fairness.Flow
	for _, f := range k.flows.List("") {
		flows = append(flows, f.spec)
	}
	k.Shares.Set(levels, flows)
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run keeps everything up to date until ctx ends, and then returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.levels.Run(ctx) })
	group.Go(func() error { return k.flows.Run(ctx) })
	group.Go(func() error {
		if k.Ready(ctx) == nil {
			k.keep(ctx)
		}
		return nil
	})
	return group.Wait()
}

func (k *Keeper) keep(ctx context.Context) {
	retries := retry.NewBackoff(firstRetry, slowestRetry)
	for ctx.Err() == nil {
		select {
		case <-k.changed:
		case <-ctx.Done():
			return
		}
		pause := rest
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("updating FlowSchemas and PriorityLevelConfigurations failed, retrying", "error", err)
			k.learn()
			pause = retries.Next()
		} else {
			retries.Reset()
		}
		if !retry.Pause(ctx, pause) {
			return
		}
	}
}

// pass restores what is missing or different, and then writes the conditions. It continues after an
// error, so that an object that cannot be written does not block the others.
func (k *Keeper) pass(ctx context.Context) error {
	var errs []error
	for _, w := range k.wanted {
		errs = append(errs, k.restore(ctx, w))
	}
	for _, f := range k.flows.List("") {
		errs = append(errs, k.report(ctx, f))
	}
	return errors.Join(errs...)
}

// amend changes an object; one that has been deleted since is not an error.
func (k *Keeper) amend(ctx context.Context, gr resource.GroupResource, name string, change func(amend.Amendment, map[string]any) error) error {
	e := k.Engine()
	t := e.Types.Stored(gr)
	if t == nil {
		return nil // disabled by --runtime-config
	}
	a := amend.Amendment{Engine: e, Type: t, Key: resource.Key{GroupResource: gr, Name: name}}
	a.Change = func(object map[string]any) error { return change(a, object) }
	err := k.Writes.Amend(ctx, a)
	if services.IsReason(err, services.ReasonNotFound) {
		return nil
	}
	return err
}
