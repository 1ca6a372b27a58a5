package kinds

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Changed returns the immutable fields that are not as they are stored, each with what is
// wrong. old is nil for a new object.
func (r *Rules) Changed(m, old map[string]any) map[string]string {
	if old == nil {
		return nil
	}
	changed := map[string]string{}
	for _, name := range r.Fixed {
		if !rules.SameField(m, old, name) {
			changed[name] = "field is immutable"
		}
	}
	for _, name := range r.Once {
		if !rules.Empty(old[name]) && !rules.SameField(m, old, name) {
			changed[name] = "field is immutable once set"
		}
	}
	return changed
}
