package fieldmanager

import (
	"cmp"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/services/tree"
)

// entry is one entry of managedFields, with its fields in the recorded form.
type entry struct {
	key    string
	fields fields.Tree
	raw    map[string]any
	before fields.Tree // as recorded
}

// entries is managedFields for the fast path, which covers most writes: all entries are in
// the version of the request and consistent with the schema. Other writes use owners and
// the field-set library.
type entries []entry

// readEntries decodes managedFields. ok is false if the fast path does not cover them.
func readEntries(t *catalogue.Type, compiled *fields.Type, list []any) (entries, bool) {
	if len(list) > maxEntries {
		return nil, false
	}
	all := make(entries, 0, len(list)+1)
	for _, item := range list {
		raw, _ := item.(map[string]any)
		below, _ := raw["fieldsV1"].(map[string]any)
		id := entryIdentity(raw)
		switch {
		case id.operation != operationApply && id.operation != operationUpdate,
			id.apiVersion != t.APIVersion(), tree.Text(raw, "fieldsType") != fieldsType,
			len(below) == 0, !compiled.Agree(below), all.of(id.key()) != nil:
			return nil, false
		}
		all = append(all, entry{key: id.key(), fields: below, raw: raw, before: below})
	}
	return all, true
}

// of returns the entry with a key; nil when there is none.
func (all entries) of(key string) *entry {
	i := slices.IndexFunc(all, func(e entry) bool { return e.key == key })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// release removes fields from all managers, and managers without fields.
func (all entries) release(taken ...fields.Tree) entries {
	left := all[:0]
	for _, e := range all {
		before := e.fields
		for _, some := range taken {
			e.fields = fields.Subtract(e.fields, some)
		}
		if len(e.fields) == 0 {
			continue
		}
		if !tree.Equal(before, e.fields) {
			e.raw = replaced(e.raw, "fieldsV1", e.fields)
		}
		left = append(left, e)
	}
	return left
}

// own sets the fields and the time of a manager's entry.
func (all entries) own(key, apiVersion string, owned fields.Tree, at string) entries {
	e := all.of(key)
	if e != nil && tree.Equal(owned, e.before) {
		owned = e.before // whose JSON may be known
	}
	raw := newEntry(key, apiVersion, owned, at)
	if e != nil {
		e.fields, e.raw = owned, raw
		return all
	}
	return append(all, entry{key: key, fields: owned, raw: raw})
}

// list returns managedFields: entries of applies first, then by time and name.
func (all entries) list() []any {
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(tree.Text(a.raw, "operation"), tree.Text(b.raw, "operation")),
			cmp.Compare(tree.Text(a.raw, "time"), tree.Text(b.raw, "time")), cmp.Compare(a.key, b.key))
	})
	list := make([]any, len(all))
	for i, e := range all {
		list[i] = e.raw
	}
	return list
}

// updaters returns the number of entries of updates.
func (all entries) updaters() (n int) {
	for _, e := range all {
		if tree.Text(e.raw, "operation") == operationUpdate {
			n++
		}
	}
	return n
}

// newEntry returns an entry of managedFields.
func newEntry(key, apiVersion string, owned fields.Tree, at string) map[string]any {
	id := identityOf(key)
	raw := map[string]any{"manager": id.name, "operation": id.operation, "apiVersion": apiVersion,
		"fieldsType": fieldsType, "fieldsV1": owned}
	if id.subresource != "" {
		raw["subresource"] = id.subresource
	}
	if at != "" {
		raw["time"] = at
	}
	return raw
}
