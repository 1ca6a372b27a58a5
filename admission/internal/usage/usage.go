// Package usage enforces ResourceQuotas: it adds the usage of an object to status.used of
// the quotas of its namespace, and rejects the request if that exceeds a limit. Check and
// charge are one compare-and-swap on the status of each quota, so that concurrent requests
// cannot exceed it together. If the object is then not stored, the front door has the charge
// given back; if it does not know whether the object is stored, the quota controller
// recounts. It implements ResourceQuota under "Admission plugins" of the
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
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

var quotas = resource.GroupResource{Resource: "resourcequotas"}

// Ledger is the part of services.Store that reads and updates quotas.
type Ledger interface {
	Get(ctx context.Context, r services.GetRequest) (services.Object, error)
	List(ctx context.Context, r services.ListRequest) (services.Page, error)
	Update(ctx context.Context, r services.UpdateRequest) (services.Object, error)
}

// Parse reads a stored ResourceQuota.
func Parse(o services.Object) (quota.Quota, error) {
	var q quota.Quota
	return q, json.Unmarshal(o.JSON, &q)
}

// Plugin is the admission plugin ResourceQuota.
type Plugin struct {
	quotas  review.Collection[quota.Quota]
	ledger  Ledger
	counter quota.Counter
	limited []Limited
	// updates is true if pods are charged that an update moves into the scope of a quota, or resizes.
	updates bool
	seed    maphash.Seed
	// locks serialize the requests of one namespace, by the hash of its name, so that
	// requests in this process do not cause conflicts for each other.
	locks [64]sync.Mutex
}

// Settings are what the plugin depends on besides quotas.
type Settings struct {
	Counter quota.Counter
	// Limited needs a quota.
	Limited []Limited
	Release release.Release
}

// New returns the plugin.
func New(quotas review.Collection[quota.Quota], ledger Ledger, s Settings) *Plugin {
	return &Plugin{quotas: quotas, ledger: ledger, counter: s.Counter, limited: s.Limited, updates: !s.Release.Before(release.V136), seed: maphash.MakeSeed()}
}

// Validate charges the additional usage of the request. It must be the last plugin, so
// that no later one rejects a charged request.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	if !p.charged(r) {
		return nil
	}
	known := p.quotas.List(r.Namespace)
	if len(known) == 0 && len(p.limited) == 0 {
		return nil
	}
	item, err := p.read(r)
	if err != nil {
		return services.BadRequest("%v", err)
	}
	c, more := &charging{item: item}, item.Used
	if r.Operation == services.OperationUpdate {
		before, err := p.counter.Read(r.Type(), r.OldObject)
		if err != nil {
			return err
		}
		if r.Resource == "pods" && !resizes(r) && !item.Moved(before) {
			return nil
		}
		c.before = &before
		more = more.Beyond(before.Used)
	}
	if len(p.limited) > 0 && len(more.Beyond(nil)) > 0 {
		if err := p.cover(ctx, r, item, known); err != nil {
			return err
		}
	}
	// The mirror may not have the status yet: what is stored decides which limits apply.
	known = slices.DeleteFunc(known, func(q quota.Quota) bool {
		return !c.concerns(&q, q.Spec.Hard) && !c.concerns(&q, q.Status.Hard)
	})
	if len(known) == 0 {
		return nil
	}
	defer p.lock(r.Namespace)()
	if len(known) > 1 || r.DryRun { // all are checked before the first is charged
		if err := p.chargeAll(ctx, r, known, c); err != nil || r.DryRun {
			return err
		}
	}
	c.charge = true
	if err := p.chargeAll(ctx, r, known, c); err != nil {
		p.giveBack(ctx, r.Namespace, c.paid)
		return err
	}
	charge, err := bill{r.Namespace, c.paid}.encode()
	r.Charge(charge)
	return err
}

// lock locks a namespace and returns the function that unlocks it.
func (p *Plugin) lock(namespace string) func() {
	lock := &p.locks[maphash.String(p.seed, namespace)%uint64(len(p.locks))]
	lock.Lock()
	return lock.Unlock
}

func (p *Plugin) chargeAll(ctx context.Context, r *review.Review, known []quota.Quota, c *charging) error {
	for _, q := range known {
		c.name = q.Metadata.Name
		if err := p.chargeOne(ctx, r, c); err != nil {
			return err
		}
	}
	return nil
}

// charged reports whether the request can increase usage.
func (p *Plugin) charged(r *review.Review) bool {
	switch {
	case r.Namespace == "", r.Repairs: // it has been counted before
		return false
	case r.Subresource != "":
		return p.updates && resizes(r)
	}
	return r.Operation == services.OperationCreate ||
		r.Operation == services.OperationUpdate && quota.Weighs(r.Type()) && (r.Resource != "pods" || p.updates)
}

// resizes reports whether the request changes the resources of a pod.
func resizes(r *review.Review) bool { return r.Is(services.OperationUpdate, "", "pods/resize") }

// read returns what the object of a request counts for. A resize counts as it is proposed, even if
// the node has refused an earlier one, which does not count otherwise: the node has not decided yet.
func (p *Plugin) read(r *review.Review) (quota.Item, error) {
	item, err := p.counter.Read(r.Type(), r.Object)
	if err != nil || !resizes(r) {
		return item, err
	}
	proposed, err := p.counter.Requested().Read(r.Type(), r.Object)
	item.Used = quota.Highest(item.Used, proposed.Used)
	return item, err
}

// Concerns reports whether requests like this one can increase usage.
func Concerns(r *review.Review) bool {
	return r.Operation == services.OperationCreate || quota.Weighs(r.Type())
}

// Idle reports whether the namespace of a review has no quota, and nothing needs one.
func (p *Plugin) Idle(r *review.Review) bool {
	return len(p.limited) == 0 && len(p.quotas.List(r.Namespace)) == 0
}

// charging is the charge of one request to one quota after the other.
type charging struct {
	name   string
	item   quota.Item
	before *quota.Item // of an update
	charge bool        // otherwise only check
	paid   []payment
}

// more returns what the request adds to the usage in a quota with some limits: all that the object
// counts for if it was not in the quota before.
func (c *charging) more(q *quota.Quota, hard quota.Amounts) quota.Amounts {
	switch {
	case !c.item.In(q):
		return nil
	case c.before != nil && c.before.In(q):
		return c.item.Used.Beyond(c.before.Used).Of(hard)
	}
	return c.item.Used.Of(hard)
}

// concerns reports whether a quota with some limits can refuse the request or is charged for it. One
// that the pod adds nothing to refuses it if a container has to request what it limits.
func (c *charging) concerns(q *quota.Quota, hard quota.Amounts) bool {
	return c.item.In(q) && len(c.item.Lacking(hard)) > 0 || len(c.more(q, hard)) > 0
}

// chargeOne makes one charge. A quota that was deleted allows everything.
func (p *Plugin) chargeOne(ctx context.Context, r *review.Review, c *charging) error {
	paid := payment{Name: c.name}
	changed, err := p.amend(ctx, r.Namespace, c.name, func(stored services.Object) (used quota.Amounts, err error) {
		used, paid.Used, err = c.against(r, stored)
		if !c.charge {
			used = nil
		}
		paid.UID = stored.UID
		return used, err
	})
	if changed {
		c.paid = append(c.paid, paid)
	}
	return err
}

// amend sets status.used of a quota to what next returns for the stored one, unless that is nil, and
// reports whether it has. It retries on conflicts. A quota that does not exist is left alone.
func (p *Plugin) amend(ctx context.Context, namespace, name string, next func(stored services.Object) (quota.Amounts, error)) (changed bool, err error) {
	key := resource.Key{GroupResource: quotas, Namespace: namespace, Name: name}
	err = services.RetryLost(ctx, services.IsConflict, func() error {
		stored, err := p.ledger.Get(ctx, services.GetRequest{Key: key})
		if services.IsReason(err, services.ReasonNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		used, err := next(stored)
		if err != nil || used == nil {
			return err
		}
		content, err := withUsed(stored, used)
		if err != nil {
			return err
		}
		_, err = p.ledger.Update(ctx, services.UpdateRequest{Key: key, Revision: stored.Revision, Content: content})
		changed = err == nil
		return err
	})
	return changed, err
}

// against returns status.used of a quota after the charge and the charge, nil if the quota does not
// apply. The limits are those of the status: a new quota, or limit, applies once its usage has been counted.
func (c *charging) against(r *review.Review, stored services.Object) (used, more quota.Amounts, err error) {
	q, err := Parse(stored)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", stored.Key, err)
	}
	if !c.item.In(&q) {
		return nil, nil, nil
	}
	if lacking := c.item.Lacking(q.Status.Hard); len(lacking) > 0 {
		return nil, nil, r.Forbid("failed quota: %s: must specify %s", c.name, strings.Join(lacking, ","))
	}
	more = c.more(&q, q.Status.Hard)
	if len(more) == 0 {
		return nil, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		if _, counted := q.Status.Used[name]; !counted {
			return nil, nil, r.Forbid("status unknown for quota: %s, resources: %s", c.name, name)
		}
	}
	used = q.Status.Used.Plus(more)
	if beyond := used.Of(more).Beyond(q.Status.Hard.Of(more)); len(beyond) > 0 {
		return nil, nil, r.Forbid("exceeded quota: %s, requested: %v, used: %v, limited: %v", c.name, more.Of(beyond), q.Status.Used.Of(beyond), q.Status.Hard.Of(beyond))
	}
	return used, more, nil
}

// withUsed returns the stored quota with status.used replaced.
func withUsed(stored services.Object, used quota.Amounts) (services.Content, error) {
	content := services.Content{UID: stored.UID, Labels: stored.Labels, Fields: stored.Fields}
	var object map[string]any
	decoder := json.NewDecoder(bytes.NewReader(stored.JSON))
	decoder.UseNumber() // keeps integers exact
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
