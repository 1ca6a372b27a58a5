// Package usage enforces ResourceQuotas: what an object would use is added to what the
// quotas of its namespace say is in use, and the request is refused when that is more
// than they allow. It decides and charges in one step, with a compare-and-swap on the
// status of each quota, so that two requests never share the last place; a charge for
// an object that then is not stored is put right when the quota is next recounted,
// which others do. It serves ResourceQuota under "Admission plugins" of the
// specification.
package usage

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// quotas is where they are kept.
var quotas = resource.GroupResource{Resource: "resourcequotas"}

// Ledger is the part of a services.Store that charges are made in.
type Ledger interface {
	Get(ctx context.Context, r services.GetRequest) (services.Object, error)
	Update(ctx context.Context, r services.UpdateRequest) (services.Object, error)
}

// Parse reads a stored ResourceQuota.
func Parse(o services.Object) (quota.Quota, error) {
	var q quota.Quota
	return q, json.Unmarshal(o.JSON, &q)
}

// Plugin enforces quotas.
type Plugin struct {
	quotas  review.Collection[quota.Quota]
	ledger  Ledger
	counter quota.Counter
	seed    maphash.Seed
	// turns let requests in one namespace come one after the other: the requests of this
	// process then never disturb each other's compare-and-swap.
	turns [64]sync.Mutex
}

// New returns the plugin.
func New(quotas review.Collection[quota.Quota], ledger Ledger, counter quota.Counter) *Plugin {
	return &Plugin{quotas: quotas, ledger: ledger, counter: counter, seed: maphash.MakeSeed()}
}

// Validate charges what the request uses more than before. It has to be asked last.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	if !charged(r) {
		return nil
	}
	known := p.quotas.List(r.Namespace)
	if len(known) == 0 {
		return nil
	}
	item, err := p.counter.Read(r.Type(), r.Object)
	if err != nil {
		return services.BadRequest("%v", err)
	}
	more := item.Used
	if r.Operation == services.OperationUpdate {
		before, err := p.counter.Read(r.Type(), r.OldObject)
		if err != nil {
			return err
		}
		more = more.Beyond(before.Used)
	}
	known = slices.DeleteFunc(known, func(q quota.Quota) bool { return len(more.Of(q.Spec.Hard)) == 0 || !item.In(&q) })
	if len(known) == 0 {
		return nil
	}
	turn := &p.turns[maphash.String(p.seed, r.Namespace)%uint64(len(p.turns))]
	turn.Lock()
	defer turn.Unlock()
	c := charging{item: item, more: more}
	if len(known) > 1 || r.DryRun { // all are looked at before the first is charged
		if err := p.settleAll(ctx, r, known, c); err != nil || r.DryRun {
			return err
		}
	}
	c.charge = true
	return p.settleAll(ctx, r, known, c)
}

func (p *Plugin) settleAll(ctx context.Context, r *review.Review, known []quota.Quota, c charging) error {
	for _, q := range known {
		c.name = q.Metadata.Name
		if err := p.settle(ctx, r, c); err != nil {
			return err
		}
	}
	return nil
}

// charged reports whether requests of this kind can use something up.
func charged(r *review.Review) bool {
	if r.Namespace == "" || r.Subresource != "" {
		return false
	}
	return r.Operation == services.OperationCreate ||
		r.Operation == services.OperationUpdate && quota.Weighs(r.Type()) && r.Resource != "pods"
}

// charging is one charge to one quota.
type charging struct {
	name   string
	item   quota.Item
	more   quota.Amounts
	charge bool // otherwise it is only looked whether it could be
}

// settle makes a charge, as often as it takes. A quota that is gone allows everything.
func (p *Plugin) settle(ctx context.Context, r *review.Review, c charging) error {
	key := resource.Key{GroupResource: quotas, Namespace: r.Namespace, Name: c.name}
	return services.RetryLost(ctx, services.IsConflict, func() error {
		stored, err := p.ledger.Get(ctx, services.GetRequest{Key: key})
		if services.IsReason(err, services.ReasonNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		used, err := c.against(r, stored)
		if err != nil || !c.charge || used == nil {
			return err
		}
		content, err := withUsed(stored, used)
		if err != nil {
			return err
		}
		_, err = p.ledger.Update(ctx, services.UpdateRequest{Key: key, Revision: stored.Revision, Content: content})
		return err
	})
}

// against returns what is in use in a quota after the charge; nil when the charge is
// none of its business.
func (c *charging) against(r *review.Review, stored services.Object) (quota.Amounts, error) {
	q, err := Parse(stored)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	if !c.item.In(&q) {
		return nil, nil
	}
	if lacking := c.item.Lacking(q.Spec.Hard); len(lacking) > 0 {
		return nil, r.Forbid("failed quota: %s: must specify %s", c.name, strings.Join(lacking, ","))
	}
	more := c.more.Of(q.Spec.Hard)
	if len(more) == 0 {
		return nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		_, limited := q.Status.Hard[name]
		if _, counted := q.Status.Used[name]; !limited || !counted {
			return nil, r.Forbid("status unknown for quota: %s, resources: %s", c.name, name)
		}
	}
	used := q.Status.Used.Plus(more)
	if beyond := used.Of(more).Beyond(q.Status.Hard.Of(more)); len(beyond) > 0 {
		return nil, r.Forbid("exceeded quota: %s, requested: %v, used: %v, limited: %v", c.name, more.Of(beyond), q.Status.Used.Of(beyond), q.Status.Hard.Of(beyond))
	}
	return used, nil
}

// withUsed returns the quota with other amounts in use.
func withUsed(stored services.Object, used quota.Amounts) (services.Content, error) {
	content := services.Content{UID: stored.UID, Labels: stored.Labels, Fields: stored.Fields}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(stored.JSON))
	decoder.UseNumber() // so that whole numbers stay exact
	if err := decoder.Decode(&object); err != nil {
		return content, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	metadata, status := tree.Child(object, "metadata"), tree.Child(object, "status")
	delete(metadata, "resourceVersion")
	status["used"] = used
	var err error
	content.JSON, err = json.Marshal(object)
	return content, err
}
