package fieldmanager

import (
	"maps"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/services/tree"
)

// trackQuickly is the fast path of Track, without the field-set library. ok is false if its
// result could differ from the library's.
func (e *Engine) trackQuickly(c Change, before, given []any) (list []any, ok bool) {
	known := e.of(c.Type)
	compiled, live := known.fields, withoutOwners(c.Live)
	switch {
	case compiled == nil:
		return nil, false
	case c.Live == nil:
		live = known.blank
		ok = given == nil
	default:
		ok = len(before) > 0 && (given == nil || tree.Equal(given, before))
	}
	if !ok {
		return nil, false
	}
	all, ok := readEntries(c.Type, compiled, before)
	if !ok {
		return nil, false
	}
	d, ok := compiled.Compare(live, withoutOwners(c.New))
	if !ok {
		return nil, false
	}
	left := untouched(c.Type, c.Subresource)
	changed, key := fields.Exclude(d.Changed, left), updaterKey(c)
	var former entry
	if own := all.of(key); own != nil {
		former = *own
	}
	all = all.release(changed, fields.Exclude(d.Removed, left))
	if mine := fields.Subtract(changed, e.unowned); len(mine) > 0 {
		if own := all.of(key); own != nil {
			mine = fields.Union(mine, own.fields)
		}
		at := e.time()
		if !e.timesValues() && tree.Equal(mine, former.before) {
			at = tree.Text(former.raw, "time")
		}
		all = all.own(key, c.Type.APIVersion(), mine, at)
	}
	return all.list(), all.updaters() <= maxUpdaters
}

// applyQuickly is the fast path of apply, for configurations that remove no fields and
// cause no conflicts. ok is false if its result could differ from the field-set library's.
func (e *Engine) applyQuickly(r PatchRequest, live, config map[string]any) (object map[string]any, ok bool) {
	compiled := e.of(r.Type).fields
	before := ownersOf(live)
	if compiled == nil || r.Current != nil && len(before) == 0 {
		return nil, false
	}
	all, ok := readEntries(r.Type, compiled, before)
	if !ok {
		return nil, false
	}
	mine, ok := compiled.Configured(config)
	left, key := untouched(r.Type, r.Subresource), applierKey(r)
	mine = fields.Exclude(mine, left)
	last := all.of(key)
	if !ok || last != nil && !fields.Contains(mine, last.fields) {
		return nil, false
	}
	if mine = fields.Subtract(mine, e.unowned); len(mine) == 0 {
		return nil, false
	}
	bare := withoutOwners(live)
	object, ok = compiled.Merge(bare, config)
	if !ok {
		return nil, false
	}
	d, ok := compiled.Compare(bare, object)
	if !ok || d.Removed != nil || all.owns(fields.Exclude(d.Changed, left), key) {
		return nil, false
	}
	at := e.time()
	if tree.Equal(bare, object) { // the recorded time stays
		if at = ""; last != nil {
			at = tree.Text(last.raw, "time")
		}
		if last != nil && tree.Equal(last.fields, mine) {
			setOwners(object, before)
			return object, true
		}
	}
	e.syncLastApplied(r, object, config)
	setOwners(object, all.own(key, r.Type.APIVersion(), mine, at).list())
	return object, true
}

// owns reports whether any manager other than but owns some of these fields.
func (all entries) owns(some fields.Tree, but string) bool {
	for _, e := range all {
		if e.key != but && fields.Intersect(e.fields, some) {
			return true
		}
	}
	return false
}

// replaced returns a copy of a map with one member replaced.
func replaced(m map[string]any, name string, value any) map[string]any {
	with := maps.Clone(m)
	with[name] = value
	return with
}
