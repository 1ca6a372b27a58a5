// Package identity maintains the Lease by which each front door shows that it serves the API,
// and the ConfigMap that says since when the use of tokens in Secrets is recorded, as
// Kubernetes has them from release 1.26 on. Its writes skip authorization and admission. It
// serves "What the service does" of the specification.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/retry"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// renewEvery is the period of renewal, and lasts how long a Lease is valid without it.
	renewEvery = 10 * time.Second
	lasts      = time.Hour
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
	Log           *slog.Logger
}

// Keeper maintains the objects.
type Keeper struct {
	Config
	now func() time.Time
}

// New returns a Keeper. The caller must call Run.
func New(c Config) *Keeper { return &Keeper{c, time.Now} }

// Run renews the Lease until ctx ends, and then returns nil. The Lease stays: another start
// of the same front door takes it over, and others delete it when it is over.
func (k *Keeper) Run(ctx context.Context) error {
	retry.Every(ctx, renewEvery, k.pass, func(err error) {
		k.Log.Warn("renewing the Lease of this front door failed, retrying", "error", err)
	})
	return nil
}

func (k *Keeper) pass(ctx context.Context) error {
	if k.Engine().Types.Release().Before(since) {
		return nil
	}
	return errors.Join(k.renew(ctx), k.track(ctx), k.sweep(ctx))
}

// name returns the name of the Lease, which is the same after another start.
func (k *Keeper) name() string {
	sum := sha256.Sum256([]byte(k.Host + "/" + k.Address))
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func (k *Keeper) label() (name, value string) {
	return k.Vocabulary.Qualified("apiserver", "identity"), k.Vocabulary.Namespace("apiserver")
}

// renew creates or renews the Lease.
func (k *Keeper) renew(ctx context.Context) error {
	label, value := k.label()
	return k.ensure(ctx, k.Vocabulary.Group("coordination.")+"/v1", "Lease", k.name(), func(lease map[string]any) {
		labels := tree.Object(tree.Object(lease, "metadata"), "labels")
		labels[label], labels[k.Vocabulary.Qualified("", "hostname")] = value, k.Host
		spec := tree.Object(lease, "spec")
		spec["holderIdentity"], spec["leaseDurationSeconds"] = k.name(), int64(lasts/time.Second)
		spec["renewTime"] = k.now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	})
}

// track creates the ConfigMap. It never changes it.
func (k *Keeper) track(ctx context.Context) error {
	return k.ensure(ctx, "v1", "ConfigMap", k.Vocabulary.Namespace("apiserver-legacy-service-account-token-tracking"), func(object map[string]any) {
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

// over lists the Leases that are over.
func (k *Keeper) over(ctx context.Context, t *catalogue.Type) (over []services.Object, err error) {
	label, value := k.label()
	request := services.ListRequest{GroupResource: t.GroupResource(), Namespace: k.Vocabulary.Namespace("system"), LabelSelector: label + "=" + value}
	_, err = services.ForEach(ctx, k.Store, request, func(o services.Object) error {
		lease, err := tree.Decode(o.JSON)
		if err != nil {
			return err
		}
		spec := tree.Child(lease, "spec")
		renewed, err := time.Parse(time.RFC3339, tree.Text(spec, "renewTime"))
		if err == nil && k.now().Sub(renewed) > time.Duration(tree.Number(spec, "leaseDurationSeconds"))*time.Second {
			over = append(over, services.Object{Key: o.Key, Revision: o.Revision})
		}
		return nil
	})
	return over, err
}
