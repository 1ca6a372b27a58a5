package writes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/services/tree"
)

// takeMutated replaces the object by the one that mutating admission has returned,
// without what admission may not change: who the object is, and what the service or
// another path writes.
func (h *Handlers) takeMutated(c *change, raw []byte) error {
	mutated, err := tree.Decode(raw)
	if err != nil {
		return err
	}
	if err := typesystem.CheckIdentity(c.next, mutated); err != nil {
		return err
	}
	typesystem.TakeManagedFields(mutated) // admission does not say who owns what
	before := c.next
	if c.next, err = c.subject.Keep(before, mutated); err != nil {
		return err
	}
	c.strategy().RestoreAfterMutation(c.next, before, c.live)
	return nil
}
