package schema

import (
	"context"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// CheckDefault notes what is wrong with the default of a custom type's schema: it
// may have no field that would be dropped, and must be valid where it stands, as it
// is: the defaults of what it leaves out do not help it.
func (e *Engine) CheckDefault(s *spec.Schema, at *field.Path, errs *field.Errors) {
	n := e.structural(s)
	p := preparation{vocabulary: e.vocabulary, asGiven: true}
	p.value(n, tree.Copy(s.Default), at)
	if len(p.unknown) > 0 {
		errs.Invalid(at, s.Default, "must not have unknown fields")
	}
	if why := p.wrongType(); why != "" {
		errs.Invalid(at, s.Default, why)
	}
	c := &check{Check: rules.Check{Vocabulary: e.vocabulary}}
	c.value(n, s.Default, nil, at)
	errs.Join(&c.Errors)
}

// Complete makes a stored object what the schema of its type wants now, in place:
// fields that the type has lost are dropped, and defaults set that it has got since, as
// far as the limit on defaults goes: beyond it the object must stay readable, so that
// somebody can put it right.
func (e *Engine) Complete(t *catalogue.Type, object map[string]any) {
	e.coerce(t, object, &preparation{vocabulary: e.vocabulary, budget: budget.New(context.Background())})
}

// Drop takes the fields out of an object that its type does not have, in place.
func (e *Engine) Drop(t *catalogue.Type, object map[string]any) {
	e.coerce(t, object, &preparation{vocabulary: e.vocabulary, asGiven: true})
}

func (e *Engine) coerce(t *catalogue.Type, object map[string]any, p *preparation) {
	if root := e.node(t.Definition); root != nil {
		p.keepsAll, p.asGiven = t.KeepsAll, p.asGiven || t.KeepsAll
		p.object(root, object, nil)
	}
}
