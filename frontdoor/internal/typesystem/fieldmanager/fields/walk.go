package fields

// Configured returns the fields of a configuration. ok is false if the result could differ
// from the library's.
func (t *Type) Configured(config map[string]any) (Tree, bool) {
	tree, _, ok := t.configured(config)
	return tree, ok
}

// configured returns the fields below a value, and whether the value itself is a field of
// the set.
func (t *Type) configured(value any) (below Tree, member, ok bool) {
	switch v := value.(type) {
	case nil:
		return nil, false, false
	case map[string]any:
		if t.shape != object || t.atomic {
			return nil, true, t.fits(value, true)
		}
		below = make(Tree, len(v))
		for name, value := range v {
			f := t.field(name)
			if f == nil {
				return nil, false, false
			}
			inside, member, ok := f.configured(value)
			if !ok {
				return nil, false, false
			}
			_, declared := t.fields[name]
			if inside = node(inside, member || !declared); inside != nil {
				below["f:"+name] = inside
			}
		}
		return below, len(v) == 0, true
	case []any:
		if t.shape != list || t.atomic {
			return nil, true, t.fits(value, true)
		}
		return t.configuredItems(v)
	}
	return nil, true, t.fits(value, true)
}

func (t *Type) configuredItems(items []any) (below Tree, member, ok bool) {
	below = make(Tree, len(items))
	for _, item := range items {
		if !t.hasKey(item) {
			return nil, false, false
		}
		inside, _, ok := t.item.configured(item)
		if !ok {
			return nil, false, false
		}
		below[t.name(item)] = node(inside, true)
	}
	return below, false, len(below) == len(items)
}

// whole returns the set of a value's own field and all fields below it.
func (t *Type) whole(value any) (Tree, bool) {
	switch v := value.(type) {
	case map[string]any:
		if t.shape == object && !t.atomic {
			return t.repeat(value, len(v), func() (Tree, bool) { return t.wholeObject(v) })
		}
	case []any:
		if t.shape == list && !t.atomic {
			return t.repeat(value, len(v), func() (Tree, bool) { return t.wholeList(v) })
		}
	}
	return leaf, t.fits(value, false)
}

func (t *Type) wholeObject(v map[string]any) (Tree, bool) {
	tree := make(Tree, len(v)+1)
	for name, value := range v {
		f := t.field(name)
		if f == nil {
			return nil, false
		}
		inside, ok := f.whole(value)
		if !ok {
			return nil, false
		}
		tree["f:"+name] = inside
	}
	return node(tree, true), true
}

func (t *Type) wholeList(v []any) (Tree, bool) {
	tree := make(Tree, len(v)+1)
	for _, item := range v {
		if !t.hasKey(item) {
			return nil, false
		}
		inside, ok := t.item.whole(item)
		if !ok {
			return nil, false
		}
		tree[t.name(item)] = inside
	}
	distinct := len(tree) == len(v)
	return node(tree, true), distinct
}

// Agree reports whether recorded fields are consistent with the schema: the parts of an
// atomic list or object are not recorded. Otherwise the schema has changed and the
// field-set library has to adapt the records.
func (t *Type) Agree(recorded Tree) bool {
	for name, value := range recorded {
		below, ok := value.(map[string]any)
		if !ok || len(name) < 2 {
			if name == self {
				continue
			}
			return false
		}
		f := t.item
		if t.shape == object && name[:2] == "f:" {
			f = t.field(name[2:])
		}
		switch {
		case f == nil || f.shape == scalar:
		case f.shape == unclear:
			return false
		case f.atomic:
			if len(below) > 0 {
				return false
			}
		case !f.Agree(below):
			return false
		}
	}
	return true
}
