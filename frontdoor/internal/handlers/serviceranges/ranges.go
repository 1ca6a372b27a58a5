// Package serviceranges maintains the ServiceCIDRs and IPAddresses of the API: the default
// ServiceCIDR with the networks of the flags, the status and the protection of all others, and
// an IPAddress for each cluster IP of a Service. Package serviceips decides who gets an address;
// an IPAddress shows the decision, and one that a client creates reserves its address. The
// package does nothing in a release without these types. Its writes skip authorization and
// admission. It serves "Resources and their fields" of the specification.
package serviceranges

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// passEvery is the period in which ServiceCIDRs are checked, and wholeEvery how many such
	// checks there are for one of all IPAddresses.
	passEvery  = 10 * time.Second
	wholeEvery = 18
)

// manager owns the condition of ServiceCIDRs, under the name that it has in Kubernetes.
const manager = "kubernetes-service-cidr-controller"

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Default are the networks of the default ServiceCIDR.
	Default serviceips.Networks
	Log     *slog.Logger
}

// Keeper maintains the objects. It is stateless: each front door runs one.
type Keeper struct{ Config }

// Run reconciles the objects until ctx ends, and then returns nil.
func (k Keeper) Run(ctx context.Context) error {
	ticks := time.NewTicker(passEvery)
	defer ticks.Stop()
	for i := 0; ; i++ {
		err := k.pass(ctx)
		if i%wholeEvery == 0 {
			err = errors.Join(err, k.reconcile(ctx))
		}
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("updating ServiceCIDRs and IPAddresses failed, retrying", "error", err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// typeOf returns a type of the networking group; nil if the release lacks it.
func (k Keeper) typeOf(kind string) *catalogue.Type {
	t, _ := k.Engine().Types.ByKind(k.Vocabulary.Group("networking."), "v1", kind)
	return t
}

// pass creates the default ServiceCIDR, marks new ones as ready, and lets go of deleted ones
// that no Service needs.
func (k Keeper) pass(ctx context.Context) error {
	t := k.typeOf("ServiceCIDR")
	if t == nil {
		return nil
	}
	all, err := k.ranges(ctx, t)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(r serviceRange) bool { return r.key.Name == k.Vocabulary.APIService }) {
		if err := k.Writes.Create(ctx, k.Engine(), t, k.defaultRange(t)); err != nil && !services.IsReason(err, services.ReasonAlreadyExists) {
			return err
		}
		if all, err = k.ranges(ctx, t); err != nil {
			return err
		}
	}
	var errs []error
	for _, r := range all {
		if r.deleted {
			errs = append(errs, k.letGo(ctx, t, r, all))
		} else if !r.marked || !r.protected {
			errs = append(errs, k.mark(ctx, t, r.key))
		}
	}
	return errors.Join(errs...)
}

// serviceRange is a ServiceCIDR.
type serviceRange struct {
	key      resource.Key
	revision int64
	networks []netip.Prefix
	// marked and ready say whether it has the condition, and that it is not false. protected says
	// whether it has this package's finalizer, and alone that it has no other one.
	marked, ready, protected, alone, deleted bool
}

// ranges lists the ServiceCIDRs.
func (k Keeper) ranges(ctx context.Context, t *catalogue.Type) (all []serviceRange, err error) {
	_, err = services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: t.GroupResource()}, func(o services.Object) error {
		object, err := tree.Decode(o.JSON)
		if err != nil {
			return err
		}
		r := serviceRange{key: o.Key, revision: o.Revision, ready: true}
		for _, text := range tree.Texts(tree.Child(object, "spec"), "cidrs") {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				r.networks = append(r.networks, prefix)
			}
		}
		for _, item := range tree.List(tree.Child(object, "status"), "conditions") {
			if condition, _ := item.(map[string]any); tree.Text(condition, "type") == "Ready" {
				r.marked, r.ready = true, tree.Text(condition, "status") != "False"
			}
		}
		metadata := tree.Child(object, "metadata")
		finalizers := tree.Texts(metadata, "finalizers")
		r.protected = slices.Contains(finalizers, k.finalizer())
		r.alone = len(finalizers) == 1
		r.deleted = tree.Text(metadata, "deletionTimestamp") != ""
		all = append(all, r)
		return nil
	})
	return all, err
}

func (k Keeper) finalizer() string {
	return k.Vocabulary.Group("networking.") + "/service-cidr-finalizer"
}

func (k Keeper) defaultRange(t *catalogue.Type) map[string]any {
	var networks []any
	for _, network := range k.Default {
		networks = append(networks, network.String())
	}
	return map[string]any{"apiVersion": t.APIVersion(), "kind": t.Kind, "metadata": map[string]any{"name": k.Vocabulary.APIService},
		"spec": map[string]any{"cidrs": networks}}
}

// mark sets the condition and the finalizer of a new ServiceCIDR.
func (k Keeper) mark(ctx context.Context, t *catalogue.Type, key resource.Key) error {
	change := amend.Amendment{Engine: k.Engine(), Type: t, Key: key}
	change.Change = func(object map[string]any) error {
		metadata := tree.Object(object, "metadata")
		if finalizers := tree.Texts(metadata, "finalizers"); !slices.Contains(finalizers, k.finalizer()) {
			metadata["finalizers"] = append(slices.Clone(tree.List(metadata, "finalizers")), k.finalizer())
		}
		for _, item := range tree.List(tree.Child(object, "status"), "conditions") {
			if condition, _ := item.(map[string]any); tree.Text(condition, "type") == "Ready" {
				return nil
			}
		}
		return change.ApplyStatus(ctx, object, manager, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True",
			"message": "Services may have addresses of this range", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}})
	}
	err := k.Writes.Amend(ctx, change)
	if services.IsReason(err, services.ReasonNotFound) {
		return nil
	}
	return err
}

// letGo removes the finalizer of a deleted ServiceCIDR once each address in it that is in use
// is in another one too.
func (k Keeper) letGo(ctx context.Context, t *catalogue.Type, r serviceRange, all []serviceRange) error {
	if !r.protected {
		return nil
	}
	needed, err := k.needed(ctx, r, all)
	if err != nil || needed {
		return err
	}
	if r.alone {
		_, err = k.Store.Delete(ctx, services.DeleteRequest{Key: r.key, Revision: r.revision})
	} else {
		err = k.Writes.Amend(ctx, amend.Amendment{Engine: k.Engine(), Type: t, Key: r.key, Change: func(object map[string]any) error {
			metadata := tree.Object(object, "metadata")
			metadata["finalizers"] = slices.DeleteFunc(slices.Clone(tree.List(metadata, "finalizers")), func(f any) bool { return f == k.finalizer() })
			return nil
		}})
	}
	if services.IsReason(err, services.ReasonNotFound) || services.IsConflict(err) {
		return nil // the next pass looks again
	}
	return err
}

// needed reports whether an address is only in this ServiceCIDR.
func (k Keeper) needed(ctx context.Context, r serviceRange, all []serviceRange) (needed bool, err error) {
	addresses := k.typeOf("IPAddress")
	if addresses == nil {
		return false, nil
	}
	in := func(networks []netip.Prefix, ip netip.Addr) bool {
		return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(ip) })
	}
	_, err = services.ForEach(ctx, k.Store, services.ListRequest{GroupResource: addresses.GroupResource()}, func(o services.Object) error {
		ip, err := netip.ParseAddr(o.Key.Name)
		if err != nil || needed || !in(r.networks, ip) {
			return nil //nolint:nilerr // no address
		}
		needed = !slices.ContainsFunc(all, func(other serviceRange) bool { return !other.deleted && in(other.networks, ip) })
		return nil
	})
	return needed, err
}

// Networks returns the networks of all ServiceCIDRs that Services may have addresses of, but
// for the default one. It serves serviceips.Shown.
func (k Keeper) Networks(ctx context.Context) ([]netip.Prefix, error) {
	t := k.typeOf("ServiceCIDR")
	if t == nil {
		return nil, nil
	}
	all, err := k.ranges(ctx, t)
	if err != nil {
		return nil, err
	}
	var networks []netip.Prefix
	for _, r := range all {
		if r.ready && !r.deleted && r.key.Name != k.Vocabulary.APIService {
			networks = append(networks, r.networks...)
		}
	}
	return networks, nil
}
