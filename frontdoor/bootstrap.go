package frontdoor

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/flowcontrol"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/reads"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// retryPause is the pause before a call to an unavailable service is retried.
const retryPause = 500 * time.Millisecond

// createdAtOnce is how many default objects of a kind are created concurrently: etcd syncs
// its log once for all of them.
const createdAtOnce = 16

// createDefaults creates the default objects of a cluster that do not exist yet: kind after
// kind, in the order of their first objects.
func (d *door) createDefaults(ctx context.Context, objects []map[string]any) error {
	e := d.types.Load().engine
	var deleted map[resource.Key]bool
	if err := d.answered(ctx, func() (err error) {
		deleted, err = bootstrap.Deleted(ctx, d.store, d.vocabulary, d.release)
		return err
	}); err != nil {
		return err
	}
	var order []*catalogue.Type
	byType := map[*catalogue.Type][]map[string]any{}
	for _, object := range objects {
		t, ok := e.Types.ByAPIVersion(tree.Text(object, "apiVersion"), tree.Text(object, "kind"))
		if !ok {
			continue // disabled by --runtime-config
		}
		if byType[t] == nil {
			order = append(order, t)
		}
		if !deleted[keyOf(t.GroupResource(), object)] {
			byType[t] = append(byType[t], object)
		}
	}
	for _, t := range order {
		if err := d.createMissing(ctx, e, t, byType[t]); err != nil {
			return err
		}
	}
	return nil
}

// createMissing creates those objects of a type that do not exist.
func (d *door) createMissing(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, objects []map[string]any) error {
	var stored map[resource.Key]bool
	if err := d.answered(ctx, func() (err error) {
		stored, err = d.keys(ctx, t.GroupResource())
		return err
	}); err != nil {
		return err
	}
	creating, ctx := errgroup.WithContext(ctx)
	creating.SetLimit(createdAtOnce)
	create := d.writes.Create
	if t.Group == d.vocabulary.Group("flowcontrol.apiserver.") {
		create = func(ctx context.Context, e *typesystem.Engine, t *catalogue.Type, object map[string]any) error {
			return d.writes.CreateAs(ctx, flowcontrol.Producer, e, t, object)
		}
	}
	for _, object := range objects {
		if stored[keyOf(t.GroupResource(), object)] {
			continue
		}
		creating.Go(func() error {
			return d.answered(ctx, func() error { return create(ctx, e, t, object) })
		})
	}
	return creating.Wait()
}

func keyOf(gr resource.GroupResource, object map[string]any) resource.Key {
	meta := strategy.Metadata(object)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	return resource.Key{GroupResource: gr, Namespace: namespace, Name: name}
}

// keys returns the keys of all objects of a type, also of those that cannot be read: they are not missing.
func (d *door) keys(ctx context.Context, gr resource.GroupResource) (map[resource.Key]bool, error) {
	keys := map[resource.Key]bool{}
	_, err := services.ForEach(ctx, d.store, services.ListRequest{GroupResource: gr, WithUnreadable: true}, func(o services.Object) error {
		keys[o.Key] = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return keys, nil
}

// answered retries calls to the services behind the front door while they are
// unavailable, so that services can start in any order.
func (d *door) answered(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || services.AsStatus(err).Code < http.StatusServiceUnavailable {
			return err
		}
		d.log.Warn("not ready, retrying", "error", err)
		if !retry.Pause(ctx, retryPause) {
			return err
		}
	}
}

// sealingKey returns the key that seals continue tokens. All replicas share it: the
// first one to start stores it under a resource that the API does not serve.
func (d *door) sealingKey(ctx context.Context) (key []byte, err error) {
	err = d.answered(ctx, func() error {
		key, err = bootstrap.SealingKey(ctx, d.store, d.log, reads.NewKey)
		return err
	})
	return key, err
}
