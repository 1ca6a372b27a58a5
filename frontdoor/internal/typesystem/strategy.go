package typesystem

import (
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
)

// Strategy returns the strategy for a write of a type; the caller sets the fields that
// depend on the request.
func (e *Engine) Strategy(t *catalogue.Type) strategy.Write {
	return strategy.Write{Type: t, Vocabulary: e.options.Vocabulary, Functions: e.functions, Definitions: definitions{e}, Release: e.Types.Release(), Feature: e.FeatureOn}
}

// definitions sets the status of CustomResourceDefinitions, given those that an engine has.
type definitions struct{ engine *Engine }

// Establish implements strategy.Definitions.
func (d definitions) Establish(obj, old map[string]any, now time.Time) {
	crd.Claims{Others: d.engine.CustomTypes, Types: d.engine.Types, Vocabulary: d.engine.options.Vocabulary, Now: now}.Establish(obj, old)
}

// MarkTerminating implements strategy.Definitions.
func (d definitions) MarkTerminating(obj map[string]any, now time.Time) {
	crd.MarkTerminating(obj, d.engine.options.Vocabulary, now)
}
