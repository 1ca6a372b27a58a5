// Package schema defaults and validates objects. A definition of the document and the rules
// of package kinds for it are compiled once, on first use, into a tree of nodes. An object
// is processed in two walks: Prepare drops or reports unknown fields, rejects wrong JSON
// types and applies defaults; Validate finds all errors.
//
// The package processes one object at a time and does no I/O: checks that depend on other
// objects belong to admission. It serves "Resources and their fields", "Event resource,
// version v1" and "Removals" of the specification.
package schema

import (
	"context"
	"strings"
	"sync"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/budget"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Types is the part of the catalogue that an engine needs.
type Types interface {
	// Definitions returns the schemas by name.
	Definitions() catalogue.Definitions
	// Release returns the release whose types these are.
	Release() release.Release
}

// Engine prepares and validates objects of all types. It may be used concurrently.
type Engine struct {
	definitions catalogue.Definitions
	vocabulary  vocabulary.Vocabulary
	release     release.Release
	rules       map[string]*kinds.Rules // by the short names of definitions

	mu       sync.RWMutex
	compiled map[string]*node // by definition

	// An engine with custom types uses builtIn for all other types; nil in the engine of
	// the built-in types.
	builtIn     *Engine
	customTypes *customTypes
}

// New returns an engine that applies these rules, by the short names of definitions.
// Definitions are compiled on first use.
func New(types Types, v vocabulary.Vocabulary, rules map[string]*kinds.Rules) *Engine {
	return &Engine{definitions: types.Definitions(), vocabulary: v, release: types.Release(), rules: rules, compiled: map[string]*node{}}
}

// FieldValidation is the request parameter fieldValidation: how unknown fields are
// reported.
type FieldValidation string

// Unknown fields are always dropped.
const (
	Ignore FieldValidation = "Ignore" // without a warning
	Warn   FieldValidation = "Warn"   // with a warning for each
	Strict FieldValidation = "Strict" // and the request is rejected
)

// Prepare drops unknown fields, checks the JSON types of the others and applies defaults,
// all in place. decodeErrors are the findings of a strict decoder (duplicate members) and
// are reported with the unknown fields. Wrong types, and unknown fields with Strict, are a
// BadRequest (400); an object that is too large after defaulting is a RequestEntityTooLarge
// (413).
func (e *Engine) Prepare(ctx context.Context, t *catalogue.Type, object map[string]any, v FieldValidation, decodeErrors ...string) (warnings []string, err error) {
	return e.PrepareChange(ctx, Change{Type: t, Object: object}, v, decodeErrors...)
}

// PrepareChange is Prepare for an object that replaces a stored one. Unknown fields that the
// stored object has with the same value are kept: a later release has stored them.
func (e *Engine) PrepareChange(ctx context.Context, ch Change, v FieldValidation, decodeErrors ...string) (warnings []string, err error) {
	t := ch.Type
	return e.PrepareBody(ctx, Body{Definition: t.Definition, Version: t.Version, Kind: t.Kind, KeepsAll: t.KeepsAll, Stored: ch.Old, Patched: ch.Patched, Applied: ch.Applied, Order: ch.Order}, ch.Object, v, decodeErrors...)
}

// Body is the type of a body that is not a resource type: that of a subresource.
type Body struct {
	Definition string // name in the document
	Version    string
	Kind       string
	// KeepsAll is catalogue.Type.KeepsAll.
	KeepsAll bool
	// Stored is the object that is replaced; nil for none.
	Stored map[string]any
	// Patched is true for the result of a patch.
	Patched bool
	// Applied is Change.Applied.
	Applied bool
	// Order is Change.Order.
	Order func(findings []string)
}

// PrepareBody is Prepare for the body of a subresource.
func (e *Engine) PrepareBody(ctx context.Context, b Body, object map[string]any, v FieldValidation, decodeErrors ...string) (warnings []string, err error) {
	root := e.node(b.Definition)
	if root == nil {
		return nil, nil // objects without a schema are not changed
	}
	p := preparation{vocabulary: e.vocabulary, decodeErrors: decodeErrors, patched: b.Patched, applied: b.Applied, stored: b.Stored, asGiven: b.KeepsAll, keepsAll: b.KeepsAll, budget: budget.New(ctx)}
	p.object(root, object, nil)
	if err := p.budget.Err(); err != nil {
		return nil, err
	}
	if why := p.wrongType(); why != "" {
		return nil, b.malformed(why)
	}
	if v == Ignore {
		return nil, nil
	}
	if b.Applied {
		p.unknown = nil // what the field management accepts is dropped without a word, as in Kubernetes
	}
	unknown := field.Findings{Decoded: p.decodeErrors, Unknown: p.unknown, Patched: p.patched, Opaque: root.opaque, Order: b.Order}.List()
	if v == Strict && len(unknown) > 0 {
		return nil, b.malformed("strict decoding error: " + strings.Join(field.OneOfYAML(unknown), ", "))
	}
	return unknown, nil
}

// Malformed is the BadRequest (400) of an object that does not match its schema.
type Malformed struct {
	*services.Status
	Why string
}

// Unwrap returns the Status.
func (m Malformed) Unwrap() error { return m.Status }

func (b Body) malformed(why string) error {
	return Malformed{services.BadRequest("%s in version %q cannot be handled as a %s: %s", b.Kind, b.Version, b.Kind, why), why}
}

// Change is an object that is about to be stored.
type Change struct {
	Type *catalogue.Type
	// Subresource is the part that the request writes; "" for the object itself.
	Subresource string
	// Object has been prepared. Old is the stored object; nil for a create.
	Object, Old map[string]any
	// Patched is true if Object is the result of a patch.
	Patched bool
	// Applied is true if Object is the result of an apply: its nulls are values.
	Applied bool
	// Order sorts unknown fields and the findings of the decoder; nil: these come first.
	Order func(findings []string)
	// Feature reports whether a feature is on; nil means the defaults.
	Feature func(string) bool
	// Warn receives warnings about a valid object.
	Warn func(texts ...string)
}

// ValidateChange returns nil, a Status (422) with all causes, or Timeout (504) if ctx is
// over first. It modifies neither object.
func (e *Engine) ValidateChange(ctx context.Context, ch Change) error {
	c := &check{Check: rules.Check{Vocabulary: e.vocabulary, Release: e.release, Root: ch.Object, Subresource: ch.Subresource, Feature: ch.Feature}, budget: budget.New(ctx),
		ratchets: ch.Old != nil && ch.Type.Custom && !e.release.Before(release.V136)}
	c.metadata(ch)
	if root := e.node(ch.Type.Definition); root != nil && ch.Type.Custom && ch.Subresource == "status" {
		c.customStatus(root, ch)
	} else if root != nil {
		c.value(root, ch.Object, ch.Old, nil)
	}
	c.scale(ch)
	if err := c.budget.Err(); err != nil {
		return err
	}
	if ch.Type.Rules != nil {
		causes, warnings, err := ch.Type.Rules.Validate(ctx, ch.Object, ch.Old, c.Causes())
		if err != nil {
			return err
		}
		c.Add(causes...)
		ch.Warn(warnings...)
	}
	group := ch.Type.Group
	if ch.Type.Stored != nil {
		group = ch.Type.Stored.Group // groups that share objects have the same errors
	}
	err := c.Status(group, ch.Type.Kind)
	if warnings := c.Warned(); err == nil && len(warnings) > 0 {
		ch.Warn(warnings...)
	}
	return err
}

// metadata validates the metadata of an object; virtual types need none.
func (c *check) metadata(ch Change) {
	if t := ch.Type; !t.Virtual {
		c.Metadata(rules.Identity{Names: t.NameRule.Format(), Namespaced: t.Namespaced,
			AnyFinalizer: t.Behavior.UnqualifiedFinalizers}, ch.Object, ch.Old)
	}
}

// scale validates the fields that the scale of a custom type reads.
func (c *check) scale(ch Change) {
	if s := ch.Type.Subresources["scale"]; ch.Type.Custom && s != nil && s.Scale != nil {
		c.Scale(rules.ScalePaths(*s.Scale), ch.Object)
	}
}

// Validate is ValidateChange for a write of the object itself.
func (e *Engine) Validate(ctx context.Context, t *catalogue.Type, object, old map[string]any) error {
	return e.ValidateChange(ctx, Change{Type: t, Object: object, Old: old, Warn: func(...string) {}})
}

// node returns the compiled definition; nil if there is none of this name.
func (e *Engine) node(definition string) *node {
	if e.builtIn != nil {
		return e.customNode(definition)
	}
	e.mu.RLock()
	n := e.compiled[definition]
	e.mu.RUnlock()
	if n != nil || e.definitions[definition] == nil {
		return n
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.compile(definition)
}
