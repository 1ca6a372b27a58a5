// Package typesystem is the type engine: all that the front door knows about resource
// types, as one immutable value. A request uses the engine that was current when it
// arrived; when the types change, a new engine replaces it. The engine converts stored
// bytes into the version and form that a path serves, and objects into the content that is
// stored. It does no I/O except for conversion webhooks. It serves "Resources and their
// fields" and "Persistence" of the specification.
package typesystem

import (
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/features"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/versions"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Engine is the type engine.
type Engine struct {
	Types    *catalogue.Catalogue
	Schemas  *schema.Engine
	Merge    *fieldmanager.Engine
	Versions versions.Versions
	// Expressions compiles the expressions that objects contain.
	Expressions *cel.Engine
	// CustomTypes are the definitions of the custom types, established or not.
	CustomTypes []crd.Definition

	// unread are the errors of definitions that cannot be read, by their names.
	unread    map[string]error
	options   Options
	functions kinds.Functions
	off       features.Fields
	// heads is the prefix of the stored JSON of a type's objects.
	heads map[*catalogue.Type][]byte
	// builtIn is the engine of the built-in types; nil in that engine.
	builtIn *Engine
	lasting *sync.Map // results of Lasting, by type; nil in that engine, too
}

// Options configure an engine.
type Options struct {
	Vocabulary vocabulary.Vocabulary
	// WithoutApply turns server-side apply off.
	WithoutApply bool
	// Features are the feature gates.
	Features featuregate.Gates
}

// New returns the engine of a catalogue. An error is a mistake in the built-in data.
func New(types *catalogue.Catalogue, o Options) (*Engine, error) {
	set, err := builtin.Read()
	if err != nil {
		return nil, err
	}
	e := build(types, schema.New(types, o.Vocabulary, set.In(types.Release())), set.Functions, o)
	e.Expressions, e.off = cel.New(cel.Config{Release: types.Release()}), features.Off(o.Features)
	return e, nil
}

// With returns an engine with these custom types, and no others. It shares the built-in
// types with e, which must be an engine without custom types.
func (e *Engine) With(customTypes []crd.Definition) *Engine {
	var surfaces []catalogue.Surface
	for _, c := range customTypes {
		if c.Established {
			surfaces = append(surfaces, c.Surface)
		}
	}
	types := e.Types.With(surfaces...)
	more := build(types, e.Schemas.With(types), e.functions, e.options)
	more.CustomTypes, more.Expressions, more.off, more.builtIn, more.lasting = customTypes, e.Expressions, e.off, e, &sync.Map{}
	return more
}

// Lasting returns an engine for a request that lasts, like a watch, and only shows objects of a type. It knows no
// other custom types: else each watch would hold all types as they were at its start, whatever has changed since.
func (e *Engine) Lasting(t *catalogue.Type) *Engine {
	switch {
	case e.builtIn == nil:
		return e
	case !t.Custom:
		return e.builtIn
	}
	if known, ok := e.lasting.Load(t); ok {
		return known.(*Engine)
	}
	var definitions []string
	for _, version := range t.Siblings {
		definitions = append(definitions, version.Definition)
	}
	own := &Engine{Types: e.builtIn.Types, Schemas: e.Schemas.Only(definitions), Merge: e.builtIn.Merge, Versions: e.Versions, Expressions: e.Expressions,
		options: e.options, functions: e.functions, off: e.off, heads: map[*catalogue.Type][]byte{}}
	if head, ok := e.heads[t]; ok {
		own.heads[t] = head
	}
	known, _ := e.lasting.LoadOrStore(t, own)
	return known.(*Engine)
}

// WithoutReading sets the errors of definitions that cannot be read, by their names, which are those of their types, and
// returns e. It must be called before e is used.
func (e *Engine) WithoutReading(definitions map[string]error) *Engine {
	e.unread = definitions
	return e
}

// Unread returns the error of the definition of a type that is not served because the definition cannot be read; nil for
// any other type.
func (e *Engine) Unread(group, resource string) error {
	if len(e.unread) == 0 {
		return nil
	}
	return e.unread[resource+"."+group]
}

// DropFeatures removes the fields of disabled features from an object, unless the stored
// object that it replaces has them. stored is nil for a new object.
func (e *Engine) DropFeatures(t *catalogue.Type, object, stored map[string]any) {
	e.off.Drop(t, object, stored)
}

// FeatureOn reports whether a feature is on.
func (e *Engine) FeatureOn(name string) bool { return e.options.Features.On(name) }

// MetaGroup returns the group of the kinds that all groups share, like ListOptions.
func (e *Engine) MetaGroup() string { return e.options.Vocabulary.Group("meta.") }

func build(types *catalogue.Catalogue, schemas *schema.Engine, functions kinds.Functions, o Options) *Engine {
	versions := versions.New(o.Vocabulary)
	e := &Engine{Types: types, Schemas: schemas, Versions: versions, options: o, functions: functions, heads: map[*catalogue.Type][]byte{},
		Merge: fieldmanager.New(fieldmanager.Options{Vocabulary: o.Vocabulary, Types: types, Convert: versions.Among(types), WithoutApply: o.WithoutApply,
			Drop: func(t *catalogue.Type, object map[string]any) {
				if of, ok := types.ByAPIVersion(tree.Text(object, "apiVersion"), t.Kind); ok {
					schemas.Drop(of, object)
				}
			}})}
	for _, g := range types.Groups() {
		for _, v := range g.Versions {
			for _, t := range v.Types {
				e.heads[t] = headOf(t)
			}
		}
	}
	return e
}

// headOf returns the prefix of the JSON of a type's objects: Encode sorts members by name,
// and apiVersion comes first.
func headOf(t *catalogue.Type) []byte {
	return []byte(`{"apiVersion":"` + t.APIVersion() + `",`)
}
