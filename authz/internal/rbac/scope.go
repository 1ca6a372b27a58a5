package rbac

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// manyGrants is the number of grants of one holder from which they are in a tree, so that a change of
// one costs little.
const manyGrants = 16

// scope is what is stored in a namespace, or cluster-wide.
type scope struct {
	roles         *btree.Map[string, *Role]
	users, groups *btree.Map[string, held]
}

func newScope() *scope {
	return &scope{roles: &btree.Map[string, *Role]{}, users: &btree.Map[string, held]{}, groups: &btree.Map[string, held]{}}
}

// copied returns a copy that may be changed.
func (s *scope) copied() *scope {
	return &scope{roles: s.roles.Copy(), users: s.users.Copy(), groups: s.groups.Copy()}
}

func (s *scope) empty() bool { return s.roles.Len()+s.users.Len()+s.groups.Len() == 0 }

// holders returns the users or groups that hold grants.
func (s *scope) holders(groups bool) *btree.Map[string, held] {
	if groups {
		return s.groups
	}
	return s.users
}

// set adds a grant, or replaces that of the same binding to the same holder.
func (s *scope) set(g *grant) {
	holders := s.holders(g.holder.group)
	old, _ := holders.Get(g.holder.name)
	holders.Set(g.holder.name, old.with(g))
}

// remove removes the grant of a binding to a holder.
func (s *scope) remove(g *grant) {
	holders := s.holders(g.holder.group)
	old, _ := holders.Get(g.holder.name)
	if left := old.without(g.binding.name); left.len() > 0 {
		holders.Set(g.holder.name, left)
	} else {
		holders.Delete(g.holder.name)
	}
}

// holder is the subject of a grant. Service accounts are users here.
type holder struct {
	group bool
	name  string
}

// compare orders holders.
func (h holder) compare(other holder) int {
	if h.group != other.group {
		if h.group {
			return 1
		}
		return -1
	}
	return strings.Compare(h.name, other.name)
}

// held are the grants of one holder in a scope, in the order of their bindings. It never changes.
type held struct {
	few  []*grant
	many *btree.Map[string, *grant] // if there are many, by the name of the binding
}

func (h held) len() int {
	if h.many != nil {
		return h.many.Len()
	}
	return len(h.few)
}

// find returns where the grant of a binding is or would be in few.
func (h held) find(binding string) (int, bool) {
	return slices.BinarySearchFunc(h.few, binding, func(g *grant, name string) int { return cmp.Compare(g.binding.name, name) })
}

func (h held) with(g *grant) held {
	if h.many != nil {
		many := h.many.Copy()
		many.Set(g.binding.name, g)
		return held{many: many}
	}
	i, ok := h.find(g.binding.name)
	switch {
	case ok:
		few := slices.Clone(h.few)
		few[i] = g
		return held{few: few}
	case len(h.few) < manyGrants:
		few := make([]*grant, 0, len(h.few)+1)
		return held{few: append(append(append(few, h.few[:i]...), g), h.few[i:]...)}
	}
	many := &btree.Map[string, *grant]{}
	for _, one := range h.few {
		many.Set(one.binding.name, one)
	}
	many.Set(g.binding.name, g)
	return held{many: many}
}

func (h held) without(binding string) held {
	if h.many != nil {
		many := h.many.Copy()
		many.Delete(binding)
		return held{many: many}
	}
	i, ok := h.find(binding)
	if !ok {
		return h
	}
	return held{few: slices.Concat(h.few[:i], h.few[i+1:])}
}

// visit calls see with each grant, until it returns false.
func (h held) visit(see visitor) bool {
	for _, g := range h.few {
		if !see(g) {
			return false
		}
	}
	if h.many == nil {
		return true
	}
	goOn := true
	h.many.Scan(func(_ string, g *grant) bool {
		goOn = see(g)
		return goOn
	})
	return goOn
}
