package fieldmanager

import (
	"errors"
	"maps"
	"time"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/hidden"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// current is a temporary manager for the request while fields are compared, so that the
// fields that it changes can be distinguished from those that its manager already owns.
const current = "\x00\x00\x00"

// Change is a write other than an apply.
type Change struct {
	Type        *catalogue.Type
	Live        map[string]any // nil for a create
	New         map[string]any
	Manager     string
	Subresource string // empty for the resource itself
}

// Track updates managedFields in c.New: the manager of the change owns the fields that it
// changes, and other fields keep their managers (rule 1 of server-side apply). If nothing
// changes, entries and times are kept. A client may edit or reset the entries (rule 8).
//
// On error, managedFields are unchanged, and the write may continue.
func (e *Engine) Track(c Change) error {
	before, given := ownersOf(c.Live), ownersOf(c.New)
	if e.WithoutApply || !e.tracks(c) {
		setOwners(c.New, before)
		return nil
	}
	if c.Live != nil && (given == nil || tree.Equal(given, before)) && sameContent(c.Live, c.New) {
		setOwners(c.New, before)
		return nil
	}
	if list, ok := e.trackQuickly(c, before, given); ok {
		setOwners(c.New, list)
		return nil
	}
	return e.trackFully(c, before, given)
}

// trackFully completes Track with the field-set library, which covers all cases.
func (e *Engine) trackFully(c Change, before, given []any) error {
	o := e.decodeChanged(c, before, given)
	if len(o.fields) == 0 && c.Live != nil && !e.Vocabulary.Behaviour.ResetOwnsChanges {
		setOwners(c.New, nil) // untracked until the first apply
		return nil
	}
	list, err := e.track(c, o)
	if err != nil {
		setOwners(c.New, before)
		return err
	}
	setOwners(c.New, list)
	return nil
}

// tracks reports whether managed fields are tracked for the subresource. The specification
// excludes those with a body of another kind (scale); Kubernetes tracks scale.
func (e *Engine) tracks(c Change) bool {
	sub := c.Type.Subresources[c.Subresource]
	if c.Subresource == "" || sub == nil || sub.Kind == c.Type.Kind {
		return true
	}
	return c.Subresource == "scale" && e.Vocabulary.Behaviour.ScaleTracksOwners
}

// decodeChanged returns the owners before the change: those that the client sent, if they
// are valid, else those of the live object.
func (e *Engine) decodeChanged(c Change, before, given []any) owners {
	if c.Subresource == "" && given != nil {
		if e.resets(c.Type, given) {
			return noOwners()
		}
		if o, err := decodeOwners(given); err == nil && len(o.fields) > 0 {
			return o
		}
	}
	o, err := decodeOwners(before)
	if err != nil {
		return noOwners()
	}
	return o
}

// resets reports whether the given managedFields request a reset: a list of one empty
// entry, or with EmptyManagedFieldsReset an empty list, except for custom types.
func (e *Engine) resets(t *catalogue.Type, given []any) bool {
	if len(given) == 0 {
		return e.Vocabulary.Behaviour.EmptyManagedFieldsReset && !t.Custom
	}
	entry, isObject := given[0].(map[string]any)
	return len(given) == 1 && isObject && len(entry) == 0
}

// track returns the managedFields after the change.
func (e *Engine) track(c Change, o owners) ([]any, error) {
	fields, err := e.update(c, o)
	if err != nil {
		return nil, err
	}
	if changed, ok := fields[current]; ok {
		delete(fields, current)
		key := updaterKey(c)
		set := changed.Set()
		if previous, ok := fields[key]; ok {
			set = set.Union(previous.Set())
		}
		fields[key] = fieldpath.NewVersionedSet(set, changed.APIVersion(), false)
		if former, ok := o.fields[key]; !ok || e.timesValues() || !former.Set().Equals(set) {
			o.times[key] = e.time()
		}
	}
	o.fields = fields
	o.bound()
	return o.encode()
}

// update compares live and new, and assigns the changed fields to the manager current.
func (e *Engine) update(c Change, o owners) (fieldpath.ManagedFields, error) {
	live := c.Live
	if live == nil {
		live = e.of(c.Type).blank
	}
	given := c.New
	if !c.Type.Custom { // hidden fields have no owner
		live, _ = hidden.Take(live, c.Type.Schema(), e.Definition)
		given, _ = hidden.Take(given, c.Type.Schema(), e.Definition)
	}
	liveTyped, err := e.Typed(live, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	newTyped, err := e.Typed(given, typed.AllowDuplicates)
	if err != nil {
		return nil, err
	}
	version := fieldpath.APIVersion(c.Type.APIVersion())
	_, fields, err := e.updater(c.Type, c.Subresource, o).Update(liveTyped, newTyped, version, o.clone(), current)
	if errors.As(err, &unconverted{}) {
		fields, err = e.updateAlone(c, o, liveTyped, newTyped)
	}
	if err != nil {
		return nil, err
	}
	return e.withoutIdentity(fields, current), nil
}

// updateAlone is update without a conversion: the managers of other versions keep what they own.
func (e *Engine) updateAlone(c Change, o owners, live, now *typed.TypedValue) (fieldpath.ManagedFields, error) {
	version, same, others := fieldpath.APIVersion(c.Type.APIVersion()), fieldpath.ManagedFields{}, fieldpath.ManagedFields{}
	for manager, set := range o.clone() {
		if set.APIVersion() == version {
			same[manager] = set
		} else {
			others[manager] = set
		}
	}
	_, fields, err := e.updater(c.Type, c.Subresource, o).Update(live, now, version, same, current)
	if err == nil {
		maps.Copy(fields, others)
	}
	return fields, err
}

// updaterKey returns the key of the entry of the change's manager.
func updaterKey(c Change) string {
	return identity{operation: operationUpdate, name: managerOr(c.Manager), apiVersion: c.Type.APIVersion(), subresource: c.Subresource}.key()
}

func managerOr(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}

// valuesTimed is the first release in which an update has a new time also if its manager owns the same
// fields as before, and only values have changed.
var valuesTimed, _ = release.Of("1.25")

// timesValues reports whether an update that changes only values has a new time.
func (e *Engine) timesValues() bool { return !e.Types.Release().Before(valuesTimed) }

func (e *Engine) time() string { return e.Now().UTC().Format(time.RFC3339) }

// withoutIdentity removes the unowned fields from one manager.
func (e *Engine) withoutIdentity(fields fieldpath.ManagedFields, key string) fieldpath.ManagedFields {
	set, ok := fields[key]
	if !ok {
		return fields
	}
	left := set.Set().Difference(setOf(e.unowned))
	if left.Empty() {
		delete(fields, key)
	} else {
		fields[key] = fieldpath.NewVersionedSet(left, set.APIVersion(), set.Applied())
	}
	return fields
}
