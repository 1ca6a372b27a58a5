// Package identity maintains the Lease by which each front door shows that it serves the API,
// its entries in StorageVersions, and the ConfigMap that says since when the use of tokens in Secrets is recorded, as
// Kubernetes has them from release 1.26 on. Its writes skip authorization and admission. It
// serves "What the service does" of the specification.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// renewEvery is the period of renewal, and lasts how long a Lease is valid without it.
	renewEvery = 10 * time.Second
	lasts      = time.Hour
	// unchanged is how long this front door must see that a Lease is not renewed before it deletes
	// it: the clock of either front door may be wrong.
	unchanged = 3 * renewEvery
	// leaveTimeout bounds the deletion of the Lease when the front door stops.
	leaveTimeout = 2 * time.Second
)

// since is the first release with these objects.
var since, _ = release.Of("1.26")

// Config configures a Keeper.
type Config struct {
	Vocabulary vocabulary.Vocabulary
	Store      services.Store
	Writes     *writes.Handlers
	// Engine returns the currently served types.
	Engine func() *typesystem.Engine
	// Host is the name of the host, and Address that of this front door on it.
	Host, Address string
	// Off is true for a front door without a Lease, and Hidden for one whose Lease has no address.
	Off, Hidden bool
	// Entries is true for a front door that has entries in StorageVersions.
	Entries bool
	Log     *slog.Logger
}

// Keeper maintains the objects.
type Keeper struct {
	Config
	now func() time.Time
	// holder is this start of the front door, and began is true once the Lease of an earlier start is gone.
	holder string
	began  bool
	// seen is which revisions of expired Leases this front door has seen, by their names.
	seen map[string]sighting
}

// sighting is the time at which a revision was first seen, by the clock of this front door.
type sighting struct {
	revision int64
	at       time.Time
}

// New returns a Keeper. The caller must call Run.
func New(c Config) *Keeper {
	k := &Keeper{Config: c, now: time.Now}
	k.holder = Name(c.Host, c.Address) + "_" + string(uuid.NewUUID())
	return k
}

// Run renews the Lease until ctx ends, and then deletes it and returns nil. Other front doors delete
// the Lease of one that could not.
func (k *Keeper) Run(ctx context.Context) error {
	retry.Every(ctx, renewEvery, k.pass, func(err error) {
		k.Log.Warn("renewing the Lease of this front door failed, retrying", "error", err)
	})
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	if err := k.leave(last, k.isMine); err != nil {
		k.Log.Debug("deleting the Lease of this front door failed, other front doors will delete it", "error", err)
	}
	return nil
}

func (k *Keeper) isMine(holder string) bool { return holder == k.holder }

func (k *Keeper) pass(ctx context.Context) error {
	if k.Engine().Types.Release().Before(since) {
		return nil
	}
	if k.Off {
		return k.track(ctx)
	}
	return errors.Join(k.renew(ctx), k.track(ctx), k.sweep(ctx), k.report(ctx))
}

// report keeps the entries in StorageVersions.
func (k *Keeper) report(ctx context.Context) error {
	t, ok := k.Engine().Types.ByKind(k.Vocabulary.Group("coordination."), "v1", "Lease")
	if !ok || !k.Entries {
		return nil
	}
	alive := map[string]bool{}
	if _, err := services.ForEach(ctx, k.Store, k.leases(t), func(o services.Object) error {
		alive[o.Key.Name] = true
		return nil
	}); err != nil {
		return err
	}
	return versionKeeper{k, Name(k.Host, k.Address)}.pass(ctx, k.Engine(), func(id string) bool { return alive[id] })
}

// leases is the request for the Leases of front doors.
func (k *Keeper) leases(t *catalogue.Type) services.ListRequest {
	label, value := Label(k.Vocabulary)
	return services.ListRequest{GroupResource: t.GroupResource(), Namespace: k.Vocabulary.Namespace("system"), LabelSelector: label + "=" + value}
}

// leave deletes the Lease if its holder is one of those meant.
func (k *Keeper) leave(ctx context.Context, of func(holder string) bool) error {
	t, ok := k.Engine().Types.ByKind(k.Vocabulary.Group("coordination."), "v1", "Lease")
	if !ok {
		return nil
	}
	key := resource.Key{GroupResource: t.GroupResource(), Namespace: k.Vocabulary.Namespace("system"), Name: Name(k.Host, k.Address)}
	stored, err := k.Store.Get(ctx, services.GetRequest{Key: key})
	if err == nil {
		var lease map[string]any
		if lease, err = tree.Decode(stored.JSON); err == nil && of(tree.Text(lease, "spec", "holderIdentity")) {
			_, err = k.Store.Delete(ctx, services.DeleteRequest{Key: key, Revision: stored.Revision})
		}
	}
	if services.IsReason(err, services.ReasonNotFound) || services.IsConflict(err) {
		return nil
	}
	return err
}

// Name returns the name of the Lease of a front door, which is the same after another start.
func Name(host, address string) string {
	sum := sha256.Sum256([]byte(host + "/" + address))
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// Label returns the label of the Leases of front doors.
func Label(v vocabulary.Vocabulary) (name, value string) {
	return v.Qualified("apiserver", "identity"), v.Namespace("apiserver")
}

// renew creates or renews the Lease. That of an earlier start is deleted first, as in Kubernetes.
func (k *Keeper) renew(ctx context.Context) error {
	if !k.began {
		if err := k.leave(ctx, func(holder string) bool { return !k.isMine(holder) }); err != nil {
			return err
		}
		k.began = true
	}
	label, value := Label(k.Vocabulary)
	return k.ensure(ctx, k.Vocabulary.Group("coordination.")+"/v1", "Lease", Name(k.Host, k.Address), func(lease map[string]any) {
		meta := tree.Object(lease, "metadata")
		labels := tree.Object(meta, "labels")
		labels[label], labels[k.Vocabulary.Qualified("", "hostname")] = value, k.Host
		if host, _, err := net.SplitHostPort(k.Address); err == nil && host != "" && !k.Hidden && !k.Engine().Types.Release().Before(release.V136) {
			tree.Object(meta, "annotations")[k.Vocabulary.Qualified("", "peer-advertise-address")] = k.Address
		}
		spec := tree.Object(lease, "spec")
		spec["holderIdentity"], spec["leaseDurationSeconds"] = k.holder, int64(lasts/time.Second)
		spec["renewTime"] = k.now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	})
}

// track creates the ConfigMap. It never changes it.
func (k *Keeper) track(ctx context.Context) error {
	return k.ensure(ctx, "v1", "ConfigMap", k.Vocabulary.TokenTracking(), func(object map[string]any) {
		data := tree.Object(object, "data")
		if tree.Text(data, "since") == "" {
			data["since"] = k.now().UTC().Format(time.DateOnly)
		}
	})
}

// ensure applies a change to an object of the system namespace, which it creates if it does
// not exist.
func (k *Keeper) ensure(ctx context.Context, apiVersion, kind, name string, change func(map[string]any)) error {
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": k.Vocabulary.Namespace("system")}}
	return k.Writes.Ensure(ctx, k.Engine(), object, func(object map[string]any) error {
		change(object)
		return nil
	})
}

// sweep deletes the Leases of front doors that have been away for too long.
func (k *Keeper) sweep(ctx context.Context) error {
	t, ok := k.Engine().Types.ByKind(k.Vocabulary.Group("coordination."), "v1", "Lease")
	if !ok {
		return nil
	}
	over, err := k.over(ctx, t)
	for _, o := range over {
		_, gone := k.Store.Delete(ctx, services.DeleteRequest{Key: o.Key, Revision: o.Revision})
		if !services.IsReason(gone, services.ReasonNotFound) && !services.IsConflict(gone) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// over lists the Leases that are over: those that have expired, and were not renewed since this front
// door has first seen that.
func (k *Keeper) over(ctx context.Context, t *catalogue.Type) (over []services.Object, err error) {
	now, seen := k.now(), map[string]sighting{}
	_, err = services.ForEach(ctx, k.Store, k.leases(t), func(o services.Object) error {
		lease, err := tree.Decode(o.JSON)
		if err != nil {
			return err
		}
		spec := tree.Child(lease, "spec")
		renewed, err := time.Parse(time.RFC3339, tree.Text(spec, "renewTime"))
		if err != nil || now.Sub(renewed) <= time.Duration(tree.Number(spec, "leaseDurationSeconds"))*time.Second {
			return nil
		}
		first, known := k.seen[o.Key.Name]
		if !known || first.revision != o.Revision {
			first = sighting{o.Revision, now}
		}
		seen[o.Key.Name] = first
		if now.Sub(first.at) >= unchanged {
			over = append(over, services.Object{Key: o.Key, Revision: o.Revision})
		}
		return nil
	})
	k.seen = seen
	return over, err
}
