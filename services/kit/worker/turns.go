package worker

// turns is the order of keys in a queue in which the tenants take turns, so that one with many
// keys does not delay the keys of others.
type turns[K comparable] struct {
	tenantOf func(K) string
	waiting  map[string][]K // by tenant
	tenants  []string       // with waiting keys, in turn
	count    int
}

func newTurns[K comparable](tenantOf func(K) string) *turns[K] {
	return &turns[K]{tenantOf: tenantOf, waiting: map[string][]K{}}
}

// Touch implements workqueue.Queue.
func (*turns[K]) Touch(K) {}

// Len implements workqueue.Queue.
func (t *turns[K]) Len() int { return t.count }

// Push implements workqueue.Queue.
func (t *turns[K]) Push(key K) {
	tenant := t.tenantOf(key)
	if len(t.waiting[tenant]) == 0 {
		t.tenants = append(t.tenants, tenant)
	}
	t.waiting[tenant] = append(t.waiting[tenant], key)
	t.count++
}

// Pop implements workqueue.Queue.
func (t *turns[K]) Pop() K {
	tenant := t.tenants[0]
	keys := t.waiting[tenant]
	t.tenants = t.tenants[1:]
	if len(keys) > 1 {
		t.waiting[tenant], t.tenants = keys[1:], append(t.tenants, tenant)
	} else {
		delete(t.waiting, tenant)
	}
	t.count--
	return keys[0]
}
