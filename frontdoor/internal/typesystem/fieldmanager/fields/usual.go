package fields

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync/atomic"

	"github.com/portico-platform/portico/services/tree"
)

const (
	// usualTrees is how many trees a type keeps, and maxUsual how many fields one of them has at most.
	usualTrees = 4
	maxUsual   = 1 << 10
)

// usual are trees of earlier values of a type. Most values have the same fields as one of these,
// which costs less to find out than to make a tree, and the JSON of the tree is known.
type usual struct {
	trees [usualTrees]atomic.Pointer[kept]
	next  atomic.Uint32 // the one to replace
}

// kept is a tree that is given to encoders as soon as it occurs again.
type kept struct {
	tree   Tree
	shared atomic.Bool
}

// repeat returns the tree of an object or list of n members: an earlier one, or that which build returns.
func (t *Type) repeat(value any, n int, build func() (Tree, bool)) (Tree, bool) {
	if n == 0 || n > maxUsual {
		return build()
	}
	for i := range t.usual.trees {
		k := t.usual.trees[i].Load()
		if k == nil {
			break
		}
		left := maxUsual
		if !t.matches(k.tree, value, &left) {
			continue
		}
		if !k.shared.Swap(true) {
			tree.Share(k.tree)
		}
		return k.tree, true
	}
	made, ok := build()
	if ok {
		t.usual.trees[t.usual.next.Add(1)%usualTrees].Store(&kept{tree: made})
	}
	return made, ok
}

// matches reports whether a tree is that of whole for a value. left is how many fields it may visit.
func (t *Type) matches(known Tree, value any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := value.(type) {
	case map[string]any:
		if t.shape == object && !t.atomic {
			return covers(known, len(v)) && t.matchesObject(known, v, left)
		}
	case []any:
		if t.shape == list && !t.atomic {
			return covers(known, len(v)) && t.matchesList(known, v, left)
		}
	}
	return len(known) == 0 && t.fits(value, false)
}

// covers reports whether a tree has n names, and its own field.
func covers(t Tree, n int) bool {
	if n == 0 {
		return len(t) == 0
	}
	_, own := t[self]
	return own && len(t) == n+1
}

func (t *Type) matchesObject(known Tree, v map[string]any, left *int) bool {
	var buffer [128]byte
	for name, value := range v {
		inside, ok := known[string(append(append(buffer[:0], "f:"...), name...))].(map[string]any)
		f := t.field(name)
		if !ok || f == nil || !f.matches(inside, value, left) {
			return false
		}
	}
	return true
}

func (t *Type) matchesList(known Tree, v []any, left *int) bool {
	var buffer [128]byte
	var seen [64]uint64 // a bit for hashes of names
	for i, item := range v {
		if !t.hasKey(item) {
			return false
		}
		name := t.appendName(buffer[:0], item)
		inside, ok := known[string(name)].(map[string]any)
		if !ok || !t.item.matches(inside, item, left) {
			return false
		}
		h := maphash.Bytes(seed, name)
		word, bit := &seen[h>>6%64], uint64(1)<<(h%64)
		if *word&bit != 0 && t.has(v[:i], name) { // duplicate items have no tree
			return false
		}
		*word |= bit
	}
	return true
}

var seed = maphash.MakeSeed()

// has reports whether a list has an item with a name.
func (t *Type) has(items []any, name []byte) bool {
	var buffer [128]byte
	return slices.ContainsFunc(items, func(item any) bool { return bytes.Equal(t.appendName(buffer[:0], item), name) })
}
