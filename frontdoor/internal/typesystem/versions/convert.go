// Package versions turns objects between the versions of their type. Most versions
// differ in nothing but their name; the shapes of the others are told as the way to
// the best version of their kind and back, so that any two versions meet there and a
// round trip loses nothing. What only a webhook can tell, the type's own converter is
// asked. Where an older version has no room for a field, it goes
// where the original puts it, as a rule into an annotation. What one version may
// leave out and another must say is filled in; otherwise the package never defaults,
// and it never validates. It serves "Deprecation rules" and "Removals" of the
// specification.
package versions

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Versions converts objects.
type Versions struct{ vocabulary vocabulary.Vocabulary }

// New returns the conversions of a vocabulary.
func New(v vocabulary.Vocabulary) Versions { return Versions{v} }

// Same reports whether an object that says this apiVersion and kind is one of the
// type as it stands.
func Same(object map[string]any, t *catalogue.Type) bool {
	return object["apiVersion"] == t.APIVersion() && object["kind"] == t.Kind
}

// Convert returns the object in the version of the type; the object itself when it
// is in that version already. The object is not modified; its parts may be shared
// with the result.
func (v Versions) Convert(ctx context.Context, object map[string]any, to *catalogue.Type) (map[string]any, error) {
	if Same(object, to) {
		return object, nil
	}
	if to.Webhook != nil {
		converted, err := to.Webhook.Convert(ctx, []map[string]any{object}, to.APIVersion())
		if err != nil {
			return nil, err
		}
		return converted[0], nil
	}
	from, _ := object["apiVersion"].(string)
	converted := maps.Clone(object)
	if before, after := v.shapeOf(from, to.Kind), v.shapeOf(to.APIVersion(), to.Kind); before != after {
		if before != nil {
			before.toBest(v.vocabulary, converted)
		}
		if after != nil {
			after.fromBest(v.vocabulary, converted)
		}
	}
	converted["apiVersion"], converted["kind"] = to.APIVersion(), to.Kind
	return converted, nil
}

// Types finds the served types by kind.
type Types interface {
	ByKind(group, version, kind string) (*catalogue.Type, bool)
}

// Among returns the conversion to any version of a type that is served, as package
// fieldmanager asks for it. For other versions it returns catalogue.ErrNoVersion.
func (v Versions) Among(types Types) func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
	return func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
		group, version, ok := strings.Cut(apiVersion, "/")
		if !ok {
			group, version = "", apiVersion
		}
		to, ok := types.ByKind(group, version, t.Kind)
		if !ok || to.Key != t.Key {
			return nil, fmt.Errorf("%s in %s: %w", t.Kind, apiVersion, catalogue.ErrNoVersion)
		}
		return v.Convert(context.Background(), object, to) // the merge library hands no context on; a webhook has a time of its own
	}
}
