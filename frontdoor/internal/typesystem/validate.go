package typesystem

import (
	"context"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema"
)

// Validate returns nil, a Status (422) with all causes, or Timeout (504) if ctx is over first. It
// modifies neither object. Objects of some versions are validated in the storage version.
func (e *Engine) Validate(ctx context.Context, ch schema.Change) (err error) {
	ch.Type = e.Versions.Validated(ch.Type)
	if ch.Object, err = e.Versions.Convert(ctx, ch.Object, ch.Type); err == nil && ch.Old != nil {
		ch.Old, err = e.Versions.Convert(ctx, ch.Old, ch.Type)
	}
	if err != nil {
		return err
	}
	return e.Schemas.ValidateChange(ctx, ch)
}
