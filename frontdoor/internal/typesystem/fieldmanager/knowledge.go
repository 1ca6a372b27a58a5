package fieldmanager

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/k8stypes"
)

// kind is a kind in one version.
type kind struct{ apiVersion, name string }

// knowledge holds what is computed once per kind.
type knowledge struct {
	fields *fields.Type // nil when it has no schema
	// blank is the object that a create is compared with. It has the fields that every
	// object of the kind has, so that no manager owns them.
	blank map[string]any
}

// of returns the knowledge about a type. Two concurrent first calls may both compute it.
func (e *Engine) of(t *catalogue.Type) *knowledge {
	k := kind{t.APIVersion(), t.Kind}
	e.mu.RLock()
	known := e.known[k]
	e.mu.RUnlock()
	if known != nil {
		return known
	}
	known = &knowledge{blank: e.blankOf(t)}
	if empty, err := e.Typed(emptyOf(t)); err == nil {
		known.fields = fields.Compile(empty.Schema(), empty.TypeRef())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.known[k] = known
	return known
}

// emptyOf returns the object that an apply starts from when there is none.
func emptyOf(t *catalogue.Type) map[string]any {
	return map[string]any{"apiVersion": t.APIVersion(), "kind": t.Kind}
}

// blankOf returns the object that a create is compared with. Custom types have no fields
// that are always present.
func (e *Engine) blankOf(t *catalogue.Type) map[string]any {
	if t.Custom || t.Schema() == nil {
		return emptyOf(t)
	}
	if blank := k8stypes.Empty(e.Vocabulary, e.Types.Release(), schema.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind}); blank != nil {
		e.prune(blank, t.Schema())
		return blank
	}
	blank := e.always(t.Schema(), true)
	blank["apiVersion"], blank["kind"] = t.APIVersion(), t.Kind
	return blank
}

// prune removes fields that the release does not have: the published Go types are newer.
func (e *Engine) prune(object map[string]any, s *spec.Schema) {
	for name, value := range object {
		field, known := s.Properties[name]
		if !known {
			delete(object, name)
			continue
		}
		if below, ok := value.(map[string]any); ok {
			e.prune(below, e.Definition(field))
		}
	}
}

// always returns the fields that are always present in objects of a kind without a
// published Go type, according to its schema: the required fields, and at the top level all
// structs.
func (e *Engine) always(s *spec.Schema, whole bool) map[string]any {
	there := map[string]any{}
	for name := range s.Properties {
		field := e.Definition(s.Properties[name])
		required := slices.Contains(s.Required, name)
		switch {
		case field == nil || !required && !whole:
		case len(field.Properties) > 0:
			there[name] = e.always(field, false)
		case required && (field.Type.Contains("array") || field.Type.Contains("object")):
			there[name] = nil
		}
	}
	return there
}

// definition resolves the reference of a field; nil when its target does not exist.
func (e *Engine) Definition(s spec.Schema) *spec.Schema {
	if len(s.AllOf) == 1 {
		s = s.AllOf[0]
	}
	if ref := s.Ref.String(); ref != "" {
		return e.Types.Definitions().Get(ref[strings.LastIndex(ref, "/")+1:])
	}
	return &s
}
