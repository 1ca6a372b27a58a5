package authz

import (
	"cmp"
	"slices"

	"github.com/portico-platform/portico/authz/internal/rbac"
)

// roundCost bounds what one round of changing the index costs, except for the first and for the oldest
// change in it, in grants. It takes some milliseconds.
const roundCost = 5000

// backlog holds changes of bindings that the index does not include yet. Whoever may write bindings
// in one namespace chooses their size, so those of namespaces with little to change come first, and
// of the others one in each round.
type backlog struct {
	waiting map[rbac.Ref]*waiting
	next    int // number of the next change
}

type waiting struct {
	rbac.Change[rbac.Binding]
	number int
}

// add adds the change of a binding. Changes of the same binding become one. A mirror that lists again
// replaces each binding by its equal, which changes nothing.
func (b *backlog) add(was, is *rbac.Binding) {
	if was != nil && is != nil && was.Same(is) {
		return
	}
	if b.waiting == nil {
		b.waiting = map[rbac.Ref]*waiting{}
	}
	key := cmp.Or(is, was).Key()
	w := b.waiting[key]
	if w == nil {
		w = &waiting{rbac.Change[rbac.Binding]{Was: was}, b.next}
		b.waiting[key] = w
		b.next++
	}
	if w.Is = is; w.Was == nil && is == nil {
		delete(b.waiting, key)
	}
}

// take removes and returns the changes of one round.
func (b *backlog) take(cost int) []rbac.Change[rbac.Binding] {
	all := make([]*waiting, 0, len(b.waiting))
	costs := map[string]int{} // by namespace
	for key, w := range b.waiting {
		all = append(all, w)
		costs[key.Namespace] += w.cost()
	}
	if len(all) == 0 {
		return nil
	}
	oldest := slices.MinFunc(all, func(a, b *waiting) int { return cmp.Compare(a.number, b.number) })
	slices.SortFunc(all, func(a, b *waiting) int {
		if a == oldest || b == oldest {
			return cmp.Compare(a.number, b.number)
		}
		return cmp.Or(cmp.Compare(costs[a.key().Namespace], costs[b.key().Namespace]), cmp.Compare(a.number, b.number))
	})
	var taken []rbac.Change[rbac.Binding]
	for i, w := range all {
		if i > 0 {
			if cost -= w.cost(); cost < 0 {
				break
			}
		}
		taken = append(taken, w.Change)
		delete(b.waiting, w.key())
	}
	return taken
}

// cost is the number of grants that the change concerns.
func (w *waiting) cost() int { return w.Was.Grants() + w.Is.Grants() + 1 }

func (w *waiting) key() rbac.Ref { return cmp.Or(w.Is, w.Was).Key() }

// namespaces returns where changes wait; nil if none do.
func (b *backlog) namespaces() map[string]bool {
	var in map[string]bool
	for key := range b.waiting {
		if in == nil {
			in = map[string]bool{}
		}
		in[key.Namespace] = true
	}
	return in
}
