package mirror

import "container/heap"

// waiter waits for a revision.
type waiter struct {
	revision int64
	reached  chan struct{}
	broken   bool // the revision will never be reached; set before reached is closed
	index    int  // in the heap; -1 if it has been removed
}

// waiters is a heap by revision, so that a change wakes only those whose revision has
// been reached.
type waiters []*waiter

func (ws *waiters) add(revision int64) *waiter {
	w := &waiter{revision: revision, reached: make(chan struct{})}
	heap.Push(ws, w)
	return w
}

func (ws *waiters) remove(w *waiter) {
	if w.index >= 0 {
		heap.Remove(ws, w.index)
	}
}

func (ws *waiters) wake(revision int64) {
	for len(*ws) > 0 && (*ws)[0].revision <= revision {
		close(heap.Pop(ws).(*waiter).reached)
	}
}

// giveUp wakes all waiters with broken set: their revisions are of an earlier epoch.
func (ws *waiters) giveUp() {
	for _, w := range *ws {
		w.index, w.broken = -1, true
		close(w.reached)
	}
	*ws = nil
}

func (ws waiters) Len() int           { return len(ws) }
func (ws waiters) Less(i, j int) bool { return ws[i].revision < ws[j].revision }

func (ws waiters) Swap(i, j int) {
	ws[i], ws[j] = ws[j], ws[i]
	ws[i].index, ws[j].index = i, j
}

func (ws *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*ws)
	*ws = append(*ws, w)
}

func (ws *waiters) Pop() any {
	last := len(*ws) - 1
	w := (*ws)[last]
	(*ws)[last], *ws = nil, (*ws)[:last]
	w.index = -1
	return w
}

var _ heap.Interface = (*waiters)(nil)
