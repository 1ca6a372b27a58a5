package schema

import (
	"context"
	"maps"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// CheckDefault validates the default of a custom type's schema: it must have no unknown
// fields, and be valid without applying the defaults of its own fields. As in Kubernetes, types of lists and
// the type of an int-or-string do not matter here. It reports whether rules can be evaluated for the default, which may
// have unknown fields then.
func (e *Engine) CheckDefault(s *spec.Schema, at *field.Path, errs *field.Errors) bool {
	n := e.structural(s)
	p := preparation{vocabulary: e.vocabulary, asGiven: true}
	p.value(n, tree.Copy(s.Default), at)
	if len(p.unknown) > 0 {
		errs.Invalid(at, s.Default, "must not have unknown fields")
	}
	if why := p.wrongType(); why != "" {
		errs.Invalid(at, s.Default, why)
		return false
	}
	root := e.structural(lax(s))
	for _, embeddedOnly := range []bool{true, false} { // errors of embedded resources hide the others
		c := &check{Check: rules.Check{Vocabulary: e.vocabulary}, embeddedOnly: embeddedOnly}
		if c.value(root, s.Default, nil, nil); c.Any() {
			errs.JoinBelow(at, &c.Errors)
			return false
		}
	}
	return true
}

// lax returns a schema without types of lists and int-or-string, also below it.
func lax(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	copied := *s
	copied.Extensions = maps.Clone(s.Extensions)
	prefix := vocabulary.K8s().Extension
	for _, name := range []string{"list-type", "list-map-keys", "int-or-string"} {
		delete(copied.Extensions, prefix+name)
	}
	copied.Properties = maps.Clone(s.Properties)
	for name, property := range s.Properties {
		copied.Properties[name] = *lax(&property)
	}
	if s.Items != nil {
		copied.Items = &spec.SchemaOrArray{Schema: lax(s.Items.Schema)}
	}
	if s.AdditionalProperties != nil {
		copied.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: lax(s.AdditionalProperties.Schema)}
	}
	return &copied
}

// Complete prunes and defaults a stored object according to the current schema of its type,
// in place. It stops defaulting at the budget's limit without an error, because the object
// must stay readable so that a client can repair it.
func (e *Engine) Complete(t *catalogue.Type, object map[string]any) {
	e.coerce(t, object, &preparation{vocabulary: e.vocabulary, budget: budget.New(context.Background())})
}

// Drop removes unknown fields from an object, in place.
func (e *Engine) Drop(t *catalogue.Type, object map[string]any) {
	e.coerce(t, object, &preparation{vocabulary: e.vocabulary, asGiven: true})
}

func (e *Engine) coerce(t *catalogue.Type, object map[string]any, p *preparation) {
	if root := e.node(t.Definition); root != nil {
		p.keepsAll, p.asGiven = t.KeepsAll, p.asGiven || t.KeepsAll
		p.object(root, object, nil)
	}
}
