// Package autoupdate restores the default roles and bindings while the service runs:
// deleted ones are created again, and missing rules, subjects and labels are added, so
// that nodes, controllers and administrators cannot lose their permissions permanently.
// Additions by users are kept, and an object whose annotation autoupdate is "false" is not
// changed. Any number of replicas may run at the same time. It serves section
// "Authorization notes" of the specification.
package autoupdate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// rest is the minimum time between two passes. It bounds the writes if a client keeps
	// deleting defaults. The first pass after a longer time starts at once.
	rest = time.Second
	// firstRetry and slowestRetry bound the backoff after a failed pass.
	firstRetry, slowestRetry = 500 * time.Millisecond, 10 * time.Second
)

// Default is a default role or binding.
type Default struct {
	Key    resource.Key
	Object map[string]any // in the stored version
}

// Writer writes defaults, without authorization.
type Writer interface {
	// Create creates the object of a default. It does not change an existing one.
	Create(ctx context.Context, d Default) error
	// Change applies change to the newest stored object of a default, and stores the
	// result if it differs. It returns NotFound (404) if the object does not exist.
	Change(ctx context.Context, d Default, change func(object map[string]any)) error
}

// Config configures a Keeper.
type Config struct {
	// Defaults are in the order of their creation: roles before their bindings.
	Defaults []Default
	// OptOut is the annotation whose value "false" opts an object out.
	OptOut string
	Source changes.Source
	Store  services.Reader
	Writer Writer
	Log    *slog.Logger
}

// Keeper restores the defaults.
type Keeper struct {
	Config
	byKey   map[resource.Key]Default
	mirrors map[resource.GroupResource]*changes.Mirror[state]
	changed chan struct{}
}

// state is the cached state of a stored default.
type state struct{ incomplete bool }

// New returns a Keeper. The caller must call Run.
func New(c Config) *Keeper {
	k := &Keeper{Config: c, byKey: map[resource.Key]Default{}, mirrors: map[resource.GroupResource]*changes.Mirror[state]{}, changed: make(chan struct{}, 1)}
	for _, d := range c.Defaults {
		k.byKey[d.Key] = d
		if k.mirrors[d.Key.GroupResource] == nil {
			k.mirrors[d.Key.GroupResource] = changes.NewMirror(changes.MirrorConfig[state]{
				Source: c.Source, Store: c.Store, GroupResource: d.Key.GroupResource, Decode: k.compare, Changed: k.wake, Log: c.Log,
			})
		}
	}
	return k
}

// compare compares a stored object with its default. It skips all other objects.
func (k *Keeper) compare(o services.Object) (state, error) {
	d, ok := k.byKey[o.Key]
	if !ok {
		return state{}, changes.ErrSkip
	}
	stored, err := tree.Decode(o.JSON)
	if err != nil {
		return state{}, err
	}
	return state{complete(stored, d.Object, k.OptOut)}, nil
}

func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// Run restores defaults until ctx ends, and then returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range k.mirrors {
		group.Go(func() error { return m.Run(ctx) })
	}
	group.Go(func() error {
		k.keep(ctx)
		return nil
	})
	return group.Wait()
}

func (k *Keeper) keep(ctx context.Context) {
	for _, m := range k.mirrors {
		select {
		case <-m.Ready():
		case <-ctx.Done():
			return
		}
	}
	retries := retry.NewBackoff(firstRetry, slowestRetry)
	for ctx.Err() == nil {
		pause := rest
		if err := k.pass(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("restoring default roles failed, retrying", "error", err)
			k.wake()
			pause = retries.Next()
		} else {
			retries.Reset()
		}
		if !retry.Pause(ctx, pause) {
			return
		}
		select {
		case <-k.changed:
		case <-ctx.Done():
			return
		}
	}
}

// pass restores missing and incomplete defaults. It continues after an error, so that an
// object that cannot be written does not block the others.
func (k *Keeper) pass(ctx context.Context) error {
	var errs []error
	for _, d := range k.Defaults {
		now := k.mirrors[d.Key.GroupResource].Now()
		seen, exists := now.Get(d.Key.Namespace, d.Key.Name)
		var err error
		switch {
		case now.Err(d.Key) != nil: // it is not missing: an administrator decides
			continue
		case !exists:
			err = k.Writer.Create(ctx, d)
		case seen.incomplete:
			err = k.Writer.Change(ctx, d, func(object map[string]any) {
				complete(object, tree.Copy(d.Object).(map[string]any), k.OptOut)
			})
		default:
			continue
		}
		switch {
		case services.IsReason(err, services.ReasonNotFound): // deleted since: the next pass creates it
		case err != nil:
			errs = append(errs, err)
		default:
			k.Log.Info("restored a missing or incomplete default role or binding", "object", d.Key.String())
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}
