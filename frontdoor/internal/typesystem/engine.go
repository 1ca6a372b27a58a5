// Package typesystem is the type engine: what the front door knows of resource types,
// as one immutable value that every request takes as it is when it comes. When the
// types change, a new engine takes its place. It turns stored bytes into the
// version and form that a path shows, and objects into what is stored. It does no
// I/O. It serves "Resources and their fields" and "Persistence" of the
// specification.
package typesystem

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/versions"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Engine is the type engine.
type Engine struct {
	Types    *catalogue.Catalogue
	Schemas  *schema.Engine
	Merge    *fieldmanager.Engine
	Versions versions.Versions
	// CustomTypes are the definitions of the custom types, established or not.
	CustomTypes []crd.Definition

	options   Options
	functions kinds.Functions
	// heads is how the stored JSON of a type's objects begins.
	heads map[*catalogue.Type][]byte
}

// Options choose how types are treated.
type Options struct {
	Vocabulary vocabulary.Vocabulary
	// WithoutApply turns server-side apply off.
	WithoutApply bool
	// Features are those that are on.
	Features features.Gates
}

// New returns the engine of a catalogue. An error is a mistake in the data that is
// built in.
func New(types *catalogue.Catalogue, o Options) (*Engine, error) {
	set, err := builtin.Read()
	if err != nil {
		return nil, err
	}
	return build(types, schema.New(types, o.Vocabulary, set.Definitions), set.Functions, o), nil
}

// With returns an engine that knows these custom types, and no others, beside the
// built-in ones that it shares with e, an engine without any.
func (e *Engine) With(customTypes []crd.Definition) *Engine {
	var surfaces []catalogue.Surface
	for _, c := range customTypes {
		if c.Established {
			surfaces = append(surfaces, c.Surface)
		}
	}
	types := e.Types.With(surfaces...)
	more := build(types, e.Schemas.With(types), e.functions, e.options)
	more.CustomTypes = customTypes
	return more
}

// DropFeatures takes the fields of features that are off out of an object that is about
// to take the place of a stored one; nil for none.
func (e *Engine) DropFeatures(t *catalogue.Type, object, stored map[string]any) {
	e.options.Features.Drop(t, object, stored)
}

// FeatureOn reports whether a feature is on.
func (e *Engine) FeatureOn(name string) bool { return e.options.Features.On(name) }

// MetaGroup is the group of what is common to all types, like the options of requests.
func (e *Engine) MetaGroup() string { return e.options.Vocabulary.Group("meta.") }

func build(types *catalogue.Catalogue, schemas *schema.Engine, functions kinds.Functions, o Options) *Engine {
	versions := versions.New(o.Vocabulary)
	e := &Engine{Types: types, Schemas: schemas, Versions: versions, options: o, functions: functions, heads: map[*catalogue.Type][]byte{},
		Merge: fieldmanager.New(fieldmanager.Options{Vocabulary: o.Vocabulary, Types: types, Convert: versions.Among(types), WithoutApply: o.WithoutApply})}
	for _, g := range types.Groups() {
		for _, v := range g.Versions {
			for _, t := range v.Types {
				e.heads[t] = headOf(t)
			}
		}
	}
	return e
}

// headOf is how the JSON of a type's objects begins: Encode sorts members by name,
// and apiVersion comes first.
func headOf(t *catalogue.Type) []byte {
	return []byte(`{"apiVersion":"` + t.APIVersion() + `",`)
}
