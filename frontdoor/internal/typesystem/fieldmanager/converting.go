package fieldmanager

import (
	"errors"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/tree"
)

// versions converts between the versions of one type in one request, for entries of managedFields
// with another apiVersion. Fields that a version of a custom type lacks are left out of the object in
// that version, so that it has a field set, and come back when it is converted on: what a version
// does not have, a manager of that version does not remove.
type versions struct {
	engine *Engine
	t      *catalogue.Type
	// lacking has the first object that was converted to each version.
	lacking map[string]pair
}

// pair is an object as it was converted, and without the fields that its version lacks.
type pair struct{ whole, pruned map[string]any }

// unconverted is the error of a conversion that fails for now, as that of a webhook that is away.
type unconverted struct{ error }

// Unwrap returns the Status of the conversion.
func (u unconverted) Unwrap() error { return u.error }

// Convert implements merge.Converter.
func (v versions) Convert(object *typed.TypedValue, version fieldpath.APIVersion) (*typed.TypedValue, error) {
	from, ok := object.AsValue().Unstructured().(map[string]any)
	if !ok || from["apiVersion"] == string(version) {
		return object, nil
	}
	to, err := v.engine.Convert(v.t, from, string(version))
	if errors.Is(err, catalogue.ErrNoVersion) {
		return nil, err
	}
	if err != nil {
		return nil, unconverted{err}
	}
	converted, err := v.engine.Typed(v.pruned(tree.Text(from, "apiVersion"), to), typed.AllowDuplicates)
	if err != nil {
		return nil, errors.Join(catalogue.ErrNoVersion, err)
	}
	return converted, nil
}

// pruned returns a converted object without the fields that its version lacks, and with those that
// the version before had no room for.
func (v versions) pruned(before string, converted map[string]any) map[string]any {
	if !v.t.Custom || v.engine.Drop == nil {
		return converted
	}
	whole := copyOf(converted)
	if lost, ok := v.lacking[before]; ok && v.t.Webhook == nil {
		restore(whole, lost.whole, lost.pruned)
	}
	left := copyOf(whole)
	v.engine.Drop(v.t, left)
	version := tree.Text(left, "apiVersion")
	if _, known := v.lacking[version]; !known {
		v.lacking[version] = pair{whole, left}
	}
	return left
}

// restore puts back into a value what pruned lacks of whole, except below what the value no longer
// has. Lists have kept their order.
func restore(value, whole, pruned any) {
	switch w := whole.(type) {
	case map[string]any:
		p, _ := pruned.(map[string]any)
		v, ok := value.(map[string]any)
		if !ok {
			return
		}
		for name, below := range w {
			if kept, had := p[name]; had {
				restore(v[name], below, kept)
			} else if _, given := v[name]; !given {
				v[name] = copyOf(below)
			}
		}
	case []any:
		p, _ := pruned.([]any)
		v, _ := value.([]any)
		at := 0
		for _, item := range v {
			for at < len(p) && !within(item, p[at]) {
				at++
			}
			if at < len(p) {
				restore(item, w[at], p[at])
				at++
			}
		}
	}
}

// within reports whether a value is what is left of another one after fields were removed.
func within(part, of any) bool {
	switch p := part.(type) {
	case map[string]any:
		o, ok := of.(map[string]any)
		if !ok {
			return false
		}
		for name, below := range p {
			if other, has := o[name]; !has || !within(below, other) {
				return false
			}
		}
		return true
	case []any:
		o, ok := of.([]any)
		at := 0
		for _, item := range p {
			for at < len(o) && !within(item, o[at]) {
				at++
			}
			if at++; at > len(o) {
				return false
			}
		}
		return ok
	}
	return tree.Equal(part, of)
}

// IsMissingVersionError reports whether a version is no longer served.
func (v versions) IsMissingVersionError(err error) bool {
	return errors.Is(err, catalogue.ErrNoVersion)
}

var _ smd.Converter = versions{}
