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

// CheckDefault validates the default of a custom type's schema: it must have no unknown
// fields, and be valid without applying the defaults of its own fields.
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
	c.value(n, s.Default, nil, nil)
	errs.JoinBelow(at, &c.Errors)
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
