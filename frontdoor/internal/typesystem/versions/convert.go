// Package versions converts objects between the versions of their type. Most versions
// have the same fields. The others are converted through the hub version of their kind,
// by the functions that the kind's file names (package kinds), and the versions of a custom
// type by its webhook. A field for which an older version has no room goes where Kubernetes
// stores it, mostly into an annotation. The package sets a default only where one version
// may omit a field and another requires it, and it never validates. It serves "Deprecation
// rules" and "Removals" of the specification.
package versions

import (
	"context"
	"fmt"
	"maps"
	"sync"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Versions converts objects.
type Versions struct {
	vocabulary vocabulary.Vocabulary
	// conversions of the built-in versions whose fields differ from those of the hub version.
	conversions map[version]*kinds.Conversion
}

// version is one version of a resource type; the group is in its short form.
type version struct{ group, version, resource string }

// New returns the conversions of a vocabulary.
func New(v vocabulary.Vocabulary) Versions { return Versions{v, conversions()} }

var conversions = sync.OnceValue(func() map[version]*kinds.Conversion {
	set, err := builtin.Read()
	if err != nil {
		return nil // the catalogue reports the error
	}
	found := map[version]*kinds.Conversion{}
	for _, k := range set.Kinds {
		for name, conversion := range k.Conversions {
			found[version{k.Group, name, k.Resource}] = conversion
		}
	}
	return found
})

// Same reports whether an object has the apiVersion and kind of the type.
func Same(object map[string]any, t *catalogue.Type) bool {
	return object["apiVersion"] == t.APIVersion() && object["kind"] == t.Kind
}

// Convert returns the object in the version of the type, and the object itself if it has
// that version already. It does not modify the object, whose parts may be shared with the
// result. An error is that of a webhook.
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
	if before, after := v.of(from, to), v.of(to.APIVersion(), to); !alike(before, after) {
		if before != nil {
			before.ToHub(v.vocabulary, converted)
		}
		if after != nil {
			after.FromHub(v.vocabulary, converted)
		}
	}
	converted["apiVersion"], converted["kind"] = to.APIVersion(), to.Kind
	return converted, nil
}

// Validated returns the version of a type in which its objects are validated.
func (v Versions) Validated(t *catalogue.Type) *catalogue.Type {
	if c := v.of(t.APIVersion(), t); c != nil && c.Validated && t.Stored != nil {
		return t.Stored
	}
	return t
}

// of returns the conversion of a version of a type, nil if it has the fields of the
// hub version.
func (v Versions) of(apiVersion string, t *catalogue.Type) *kinds.Conversion {
	gv, err := runtimeschema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	return v.conversions[version{v.vocabulary.ShortGroup(gv.Group), gv.Version, t.Resource}]
}

// alike reports whether two versions have the same fields.
func alike(a, b *kinds.Conversion) bool {
	return a == b || a != nil && b != nil && a.From == b.From
}

// Types finds the served types.
type Types interface {
	ByAPIVersion(apiVersion, kind string) (*catalogue.Type, bool)
}

// Among returns the conversion to any served version of a type, for package
// fieldmanager. For other versions it returns catalogue.ErrNoVersion.
func (v Versions) Among(types Types) func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
	return func(t *catalogue.Type, object map[string]any, apiVersion string) (map[string]any, error) {
		to, ok := types.ByAPIVersion(apiVersion, t.Kind)
		if !ok || to.Key != t.Key {
			return nil, fmt.Errorf("%s in %s: %w", t.Kind, apiVersion, catalogue.ErrNoVersion)
		}
		return v.Convert(context.Background(), object, to) // the merge library passes no context; a webhook has a timeout of its own
	}
}
