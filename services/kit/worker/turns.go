package worker

// turns is the order of keys in a queue: those on whose behalf they are take turns, so that
// somebody with many keys does not delay the keys of others.
type turns[K comparable] struct {
	of      func(K) string
	waiting map[string][]K
	next    []string // those with waiting keys
	count   int
}

func newTurns[K comparable](of func(K) string) *turns[K] {
	return &turns[K]{of: of, waiting: map[string][]K{}}
}

// Touch implements workqueue.Queue.
func (*turns[K]) Touch(K) {}

// Len implements workqueue.Queue.
func (t *turns[K]) Len() int { return t.count }

// Push implements workqueue.Queue.
func (t *turns[K]) Push(key K) {
	who := t.of(key)
	if len(t.waiting[who]) == 0 {
		t.next = append(t.next, who)
	}
	t.waiting[who] = append(t.waiting[who], key)
	t.count++
}

// Pop implements workqueue.Queue.
func (t *turns[K]) Pop() K {
	who := t.next[0]
	keys := t.waiting[who]
	t.next = t.next[1:]
	if len(keys) > 1 {
		t.waiting[who], t.next = keys[1:], append(t.next, who)
	} else {
		delete(t.waiting, who)
	}
	t.count--
	return keys[0]
}
