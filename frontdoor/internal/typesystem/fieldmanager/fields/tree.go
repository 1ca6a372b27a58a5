package fields

// Tree is a set of fields in the recorded form (fieldsV1): a member for each field, f:name,
// and each list item, k:{...} or v:..., with the fields below it. A field is itself in the
// set if its tree is empty or contains a dot. Trees are immutable and share their parts.
type Tree = map[string]any

// leaf is the tree of a field without fields below it. Like all trees it is never modified.
var leaf = Tree{}

// self is the member that marks a field with others below it as part of the set.
const self = "."

// below returns the tree below a name.
func below(t Tree, name string) (Tree, bool) {
	b, ok := t[name].(map[string]any)
	return b, ok
}

// isMember reports whether the field with this tree below it is itself in the set.
func isMember(below Tree) bool {
	_, ok := below[self]
	return ok || len(below) == 0
}

// node returns the tree of a field with these children that is itself in the set or not;
// nil when it is empty.
func node(children Tree, member bool) Tree {
	switch {
	case len(children) == 0 && !member:
		return nil
	case len(children) == 0:
		return leaf
	case member:
		children[self] = leaf
	}
	return children
}

// Subtract returns the fields of a that are not in b; nil when there are none. Fields below
// a field of b are kept.
func Subtract(a, b Tree) Tree {
	return without(a, b, func(a, b Tree) Tree {
		left := Subtract(children(a), children(b))
		return node(left, isMember(a) && !isMember(b))
	})
}

// Exclude returns the fields of a that are neither in b nor below a field of b.
func Exclude(a, b Tree) Tree {
	return without(a, b, func(a, b Tree) Tree {
		if isMember(b) {
			return nil
		}
		return node(Exclude(children(a), b), isMember(a))
	})
}

// without returns a in which remain has been applied to the trees of the names that a and b
// share.
func without(a, b Tree, remain func(a, b Tree) Tree) Tree {
	left := Tree(nil)
	for name := range b {
		inA, ok := below(a, name)
		inB, _ := below(b, name)
		if !ok || name == self {
			continue
		}
		if left == nil {
			left = copyTop(a)
		}
		if rest := remain(inA, inB); rest != nil {
			left[name] = rest
		} else {
			delete(left, name)
		}
	}
	switch {
	case left == nil && len(a) > 0:
		return a
	case len(left) == 0:
		return nil
	}
	return left
}

// children returns a tree without its dot. It is a copy if there was one.
func children(t Tree) Tree {
	if _, ok := t[self]; !ok {
		return t
	}
	c := copyTop(t)
	delete(c, self)
	return c
}

func copyTop(t Tree) Tree {
	c := make(Tree, len(t))
	for name, below := range t {
		c[name] = below
	}
	return c
}

// Union returns the fields of a and b.
func Union(a, b Tree) Tree {
	if len(a) == 0 {
		return b
	}
	all := copyTop(a)
	for name := range b {
		inA, ok := below(a, name)
		inB, _ := below(b, name)
		if ok && name != self {
			all[name] = node(copyTop(Union(children(inA), children(inB))), isMember(inA) || isMember(inB))
		} else if !ok {
			all[name] = inB
		}
	}
	return all
}

// Intersect reports whether a and b have a field in common.
func Intersect(a, b Tree) bool {
	for name := range b {
		inA, ok := below(a, name)
		inB, _ := below(b, name)
		if ok && name != self && (isMember(inA) && isMember(inB) || Intersect(inA, inB)) {
			return true
		}
	}
	return false
}

// Contains reports whether all fields of b are in a.
func Contains(a, b Tree) bool {
	for name := range b {
		if name == self {
			continue
		}
		inA, ok := below(a, name)
		inB, _ := below(b, name)
		if !ok || isMember(inB) && !isMember(inA) || !Contains(inA, inB) {
			return false
		}
	}
	return true
}
