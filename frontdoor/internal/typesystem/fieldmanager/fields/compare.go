package fields

import (
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/portico-platform/portico/services/tree"
)

// Difference holds the fields that differ between two objects; a nil tree is empty.
type Difference struct {
	Changed Tree // modified and added
	Removed Tree
}

func (d Difference) empty() bool { return d.Changed == nil && d.Removed == nil }

// Compare returns the changed and removed fields. An object or list that was null is not
// itself a changed field; the fields that are added to it are. ok is false if the result
// could differ from the library's.
func (t *Type) Compare(before, after map[string]any) (Difference, bool) {
	return t.compare(before, after)
}

func (t *Type) compare(before, after any) (Difference, bool) {
	switch {
	case t.shape == unclear:
		return Difference{}, false
	case t.shape == scalar || t.atomic:
		return t.compareLeaves(before, after)
	case t.shape == object:
		b, isObject := before.(map[string]any)
		a, ok := after.(map[string]any)
		if !ok || !isObject && (before != nil || len(a) == 0) {
			return Difference{}, false
		}
		return t.compareObjects(b, a)
	}
	b, isList := before.([]any)
	a, ok := after.([]any)
	switch {
	case !ok || !isList && (before != nil || len(a) == 0):
		return Difference{}, false
	case tree.Equal(before, after):
		return Difference{}, t.fits(after, false)
	}
	return t.compareItems(b, a)
}

func (t *Type) compareLeaves(before, after any) (Difference, bool) {
	if !t.fits(before, false) || !t.fits(after, false) {
		return Difference{}, false
	}
	// the library compares numbers by value
	if tree.Equal(before, after) || value.Equals(value.NewValueInterface(before), value.NewValueInterface(after)) {
		return Difference{}, true
	}
	return Difference{Changed: leaf}, true
}

func (t *Type) compareObjects(before, after map[string]any) (d Difference, ok bool) {
	for name, old := range before {
		f := t.field(name)
		if f == nil {
			return d, false
		}
		now, given := after[name]
		if !given {
			if !d.remove(f, "f:"+name, old) {
				return d, false
			}
			continue
		}
		inside, ok := f.compare(old, now)
		if !ok {
			return d, false
		}
		if !inside.empty() {
			d.put("f:"+name, inside)
		}
	}
	for name, now := range after {
		if _, given := before[name]; given {
			continue
		}
		if f := t.field(name); f == nil || !d.add(f, "f:"+name, now) {
			return d, false
		}
	}
	return d, true
}

func (t *Type) compareItems(before, after []any) (d Difference, ok bool) {
	names, olds, ok := t.names(before)
	if !ok {
		return d, false
	}
	newNames, news, ok := t.names(after)
	if !ok {
		return d, false
	}
	for _, n := range names {
		now, given := news[n]
		if !given {
			if !d.remove(t.item, n, olds[n]) {
				return d, false
			}
			continue
		}
		inside, ok := t.item.compare(olds[n], now)
		if !ok {
			return d, false
		}
		d.put(n, inside)
	}
	for _, n := range newNames {
		if _, given := olds[n]; !given && !d.add(t.item, n, news[n]) {
			return d, false
		}
	}
	return d, true
}

// put adds the differences below a name, if there are any.
func (d *Difference) put(name string, inside Difference) {
	if inside.Changed != nil {
		put(&d.Changed, name, inside.Changed)
	}
	if inside.Removed != nil {
		put(&d.Removed, name, inside.Removed)
	}
}

// remove adds a removed value.
func (d *Difference) remove(t *Type, name string, value any) bool {
	all, ok := t.whole(value)
	put(&d.Removed, name, all)
	return ok
}

// add adds a new value.
func (d *Difference) add(t *Type, name string, value any) bool {
	all, ok := t.whole(value)
	put(&d.Changed, name, all)
	return ok
}

func put(t *Tree, name string, below Tree) {
	if *t == nil {
		*t = Tree{}
	}
	(*t)[name] = below
}
