package fieldmanager

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/recorded"
	"github.com/portico-platform/portico/services/tree"
)

const (
	operationApply  = "Apply"
	operationUpdate = "Update"
	fieldsType      = "FieldsV1"
	// maxUpdaters limits the entries of updates in one object; the oldest are merged into
	// one entry per version, named ancient.
	maxUpdaters = 10
	ancient     = "ancient-changes"
	// maxEntries limits the entries of one object. Updates account for maxUpdaters of them;
	// the others are managers that apply. If a client sends more entries, the stored ones
	// are kept.
	maxEntries = 500
)

// identity identifies an entry of managedFields. An apply in another version belongs to the
// same entry, so apiVersion is empty for applies.
type identity struct {
	operation, name, apiVersion, subresource string
}

// key returns the identity as one string, the form that the field-set library needs.
func (i identity) key() string {
	if i.operation == operationApply {
		i.apiVersion = ""
	}
	return strings.Join([]string{i.operation, i.name, i.apiVersion, i.subresource}, "\x00")
}

// identityOf is the inverse of key.
func identityOf(key string) identity {
	part := strings.SplitN(key, "\x00", 4)
	return identity{operation: part[0], name: part[1], apiVersion: part[2], subresource: part[3]}
}

// entryIdentity returns the identity of an entry.
func entryIdentity(entry map[string]any) identity {
	return identity{tree.Text(entry, "operation"), tree.Text(entry, "manager"), tree.Text(entry, "apiVersion"), tree.Text(entry, "subresource")}
}

// owners is the decoded metadata.managedFields: the fields that each manager owns, and the
// time of its last change (RFC 3339).
type owners struct {
	fields fieldpath.ManagedFields
	times  map[string]string
}

func noOwners() owners {
	return owners{fields: fieldpath.ManagedFields{}, times: map[string]string{}}
}

// clone returns a copy that the library may modify; the sets themselves are immutable.
func (o owners) clone() fieldpath.ManagedFields { return maps.Clone(o.fields) }

// decodeOwners decodes managedFields.
func decodeOwners(list []any) (owners, error) {
	o := noOwners()
	if len(list) > maxEntries {
		return o, fmt.Errorf("there are %d managedFields, more than %d", len(list), maxEntries)
	}
	for i, item := range list {
		entry, _ := item.(map[string]any)
		id := entryIdentity(entry)
		switch {
		case id.operation != operationApply && id.operation != operationUpdate:
			return o, fmt.Errorf("managedFields[%d].operation must be %s or %s", i, operationApply, operationUpdate)
		case id.apiVersion == "":
			return o, fmt.Errorf("managedFields[%d].apiVersion must not be empty", i)
		case tree.Text(entry, "fieldsType") != fieldsType:
			return o, fmt.Errorf("managedFields[%d].fieldsType must be %s", i, fieldsType)
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		set := &fieldpath.Set{}
		if err := recorded.Decode(set, fields); err != nil {
			return o, fmt.Errorf("managedFields[%d].fieldsV1: %w", i, err)
		}
		key := id.key()
		o.fields[key] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(id.apiVersion), id.operation == operationApply)
		if at := tree.Text(entry, "time"); at != "" {
			o.times[key] = at
		}
	}
	return o, nil
}

// encode returns managedFields: entries of applies first, then by time and name.
func (o owners) encode() ([]any, error) {
	keys := make([]string, 0, len(o.fields))
	for key := range o.fields {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(identityOf(a).operation, identityOf(b).operation),
			cmp.Compare(o.times[a], o.times[b]), cmp.Compare(a, b))
	})
	list := make([]any, 0, len(keys))
	for _, key := range keys {
		set := o.fields[key]
		fields, err := recorded.Encode(set.Set())
		if err != nil {
			return nil, err
		}
		list = append(list, newEntry(key, string(set.APIVersion()), fields, o.times[key]))
	}
	return list, nil
}

// bound merges the oldest entries of updates, so that at most maxUpdaters are left.
func (o owners) bound() {
	var updaters []string
	for key, set := range o.fields {
		if !set.Applied() {
			updaters = append(updaters, key)
		}
	}
	excess := len(updaters) - maxUpdaters
	if excess <= 0 {
		return
	}
	slices.SortFunc(updaters, func(a, b string) int {
		return cmp.Or(cmp.Compare(o.times[a], o.times[b]), cmp.Compare(a, b))
	})
	first := map[fieldpath.APIVersion]string{} // the oldest entry per version
	for _, key := range updaters {
		if excess <= 0 {
			return
		}
		set := o.fields[key]
		oldest, seen := first[set.APIVersion()]
		if !seen {
			first[set.APIVersion()] = key
			continue
		}
		bucket := identity{operation: operationUpdate, name: ancient, apiVersion: string(set.APIVersion())}.key()
		union := set.Set().Union(o.fields[oldest].Set())
		delete(o.fields, oldest)
		delete(o.fields, key)
		o.fields[bucket] = fieldpath.NewVersionedSet(union, set.APIVersion(), false)
		o.times[bucket] = o.times[key] // the younger of the two
		first[set.APIVersion()] = bucket
		excess--
	}
}
