// Package convert turns objects between the versions of their type. Most versions
// differ in nothing but their name; what differs more has a function of its own,
// for both directions, so that a round trip loses nothing. It never defaults or
// validates. It serves "Deprecation rules" and "Removals" of the specification.
package convert

import (
	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Versions converts objects.
type Versions struct{ vocabulary vocabulary.Vocabulary }

// New returns the conversions of a vocabulary.
func New(v vocabulary.Vocabulary) Versions { return Versions{v} }

// Same tells whether an object that says this apiVersion and kind is one of the
// type as it stands.
func Same(object map[string]any, t *catalogue.Type) bool {
	return object["apiVersion"] == t.APIVersion() && object["kind"] == t.Kind
}

// Convert returns the object in the version of the type; the object itself when it
// is in that version already. Its parts may be shared with the result.
func (v Versions) Convert(object map[string]any, to *catalogue.Type) (map[string]any, error) {
	if Same(object, to) {
		return object, nil
	}
	if to.Webhook {
		return nil, errNeedsWebhook(object, to)
	}
	if to.Kind == "CustomResourceDefinition" && to.Group == v.vocabulary.Group("apiextensions.") {
		return definition(object, to.Version), nil
	}
	from, _ := object["apiVersion"].(string)
	converted := make(map[string]any, len(object))
	for field, value := range object {
		converted[field] = value
	}
	if to.Kind == "Event" {
		events(converted, from == "v1", to.Group == "")
	}
	converted["apiVersion"], converted["kind"] = to.APIVersion(), to.Kind
	return converted, nil
}
