package main

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	helpers "k8s.io/component-helpers/resource"
)

const (
	// maxAmount bounds one amount, so that sums of many do not overflow.
	maxAmount = 1 << 46
	// heldFor is how long a pod that was admitted, but is not stored yet, counts: longer than
	// a request may take.
	heldFor = 60 * time.Second
)

// amounts are requested resources: cores in thousandths, anything else in its own unit.
type amounts map[corev1.ResourceName]int64

// amountsOf returns what a pod requests until it has ended.
func amountsOf(pod *corev1.Pod) amounts {
	a := amounts{}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return a
	}
	for name, quantity := range helpers.PodRequests(pod, helpers.PodResourcesOptions{}) {
		a[name] = amountOf(name, quantity)
	}
	return a
}

// amountOf returns a quantity as an amount. The integers of a Quantity wrap around when they
// overflow, so a quantity beyond the maximum is recognized by its approximate value.
func amountOf(name corev1.ResourceName, q resource.Quantity) int64 {
	scale := int64(1)
	if name == corev1.ResourceCPU {
		scale = 1000
	}
	if q.AsApproximateFloat64() >= float64(maxAmount/scale) {
		return maxAmount
	}
	if scale > 1 {
		return max(0, q.MilliValue())
	}
	return max(0, q.Value())
}

func (a amounts) add(b amounts) {
	for name, amount := range b {
		a[name] += amount
	}
}

func (a amounts) subtract(b amounts) {
	for name, amount := range b {
		if a[name] -= amount; a[name] == 0 {
			delete(a, name)
		}
	}
}

// ledger holds what the pods of each namespace request: those that are stored, as the
// informer reports them, and those that were admitted and are not stored yet. Without the
// second, concurrent creates would all see the same budget left.
type ledger struct {
	now func() time.Time

	mu         sync.Mutex
	namespaces map[string]*account
}

// account is one namespace. Pods are identified by name.
type account struct {
	stored                 map[string]pod
	held                   map[string]holding
	storedTotal, heldTotal amounts
	order                  []entry // of held, oldest first
}

// pod is a stored pod.
type pod struct {
	uid types.UID
	of  amounts
}

// holding is a pod that was admitted and is not stored yet.
type holding struct {
	of       amounts
	until    time.Time
	replaces types.UID // of the stored pod with its name, which has to be deleted first
}

// entry is a holding by name.
type entry struct {
	name  string
	until time.Time
}

func newLedger(now func() time.Time) *ledger {
	return &ledger{now: now, namespaces: map[string]*account{}}
}

// account returns the account of a namespace.
func (l *ledger) account(namespace string) *account {
	a := l.namespaces[namespace]
	if a == nil {
		a = &account{stored: map[string]pod{}, held: map[string]holding{}, storedTotal: amounts{}, heldTotal: amounts{}}
		l.namespaces[namespace] = a
	}
	return a
}

// drop removes the account of a namespace without pods.
func (l *ledger) drop(namespace string, a *account) {
	if len(a.stored) == 0 && len(a.held) == 0 {
		delete(l.namespaces, namespace)
	}
}

// store records a stored pod, which is no longer held.
func (l *ledger) store(namespace, name string, p pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(namespace)
	if h, ok := a.held[name]; ok && h.replaces != p.uid {
		a.release(name)
	}
	a.storedTotal.subtract(a.stored[name].of)
	a.stored[name] = p
	a.storedTotal.add(p.of)
}

// remove forgets a stored pod.
func (l *ledger) remove(namespace, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(namespace)
	a.storedTotal.subtract(a.stored[name].of)
	delete(a.stored, name)
	a.expire(l.now())
	l.drop(namespace, a)
}

// release forgets a held pod.
func (a *account) release(name string) {
	a.heldTotal.subtract(a.held[name].of)
	delete(a.held, name)
}

// expire releases the pods that were held too long: they were not created after all.
func (a *account) expire(now time.Time) {
	expired := 0
	for ; expired < len(a.order) && a.order[expired].until.Before(now); expired++ {
		if e := a.order[expired]; a.held[e.name].until.Equal(e.until) {
			a.release(e.name)
		}
	}
	a.order = a.order[expired:]
}

// verdict is the result of a request for a share of the budget.
type verdict struct {
	admitted bool
	// left is what the stored pods leave of the budget, and held what others that are not
	// stored yet take of it.
	left, held float64
}

// ask is a request for a pod.
type ask struct {
	namespace, name string
	of              amounts
	hold            bool // false in a dry run
}

// rounding is the tolerance in comparisons of sums of prices.
const rounding = 1e-9

// take decides about a pod and holds its share. A stored pod with the same name does not
// count: it is being deleted, or else the creation fails.
func (l *ledger) take(ask ask, c config) verdict {
	budget, limited := c.budget(ask.namespace)
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.account(ask.namespace)
	defer l.drop(ask.namespace, a)
	a.expire(l.now())
	before := a.stored[ask.name]
	v := verdict{
		left: budget - c.cost(a.storedTotal) + c.cost(before.of),
		held: c.cost(a.heldTotal) - c.cost(a.held[ask.name].of),
	}
	cost := c.cost(ask.of)
	v.admitted = !limited || cost == 0 || cost+v.held <= v.left+rounding
	if !v.admitted || !ask.hold {
		return v
	}
	a.release(ask.name)
	h := holding{ask.of, l.now().Add(heldFor), before.uid}
	a.held[ask.name] = h
	a.heldTotal.add(h.of)
	a.order = append(a.order, entry{ask.name, h.until})
	return v
}
