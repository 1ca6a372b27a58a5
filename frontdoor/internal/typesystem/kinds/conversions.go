package kinds

import (
	"fmt"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Conversion converts objects of one version of a kind to its hub version and back, so that
// any two versions are converted through the hub. An object that is converted to the hub
// version and back loses nothing.
type Conversion struct {
	// From and To are the names of the functions. To may be empty if objects of the hub
	// version need no change.
	From string `json:"from"`
	To   string `json:"to"`
	// Validated is true if objects are validated in the storage version, whose paths errors have,
	// rather than in their own.
	Validated bool `json:"validated"`

	// ToHub and FromHub are the functions, once they are resolved.
	ToHub, FromHub ConvertFunc `json:"-"`
}

// ConvertFunc modifies the object that it is given and shares its parts: it replaces what
// it changes below the first level (package edit). It leaves apiVersion and kind alone.
type ConvertFunc func(v vocabulary.Vocabulary, object map[string]any)

func (k *Kind) resolveConversions(functions map[string]ConvertFunc) error {
	for version, c := range k.Conversions {
		if c.ToHub = functions[c.From]; c.ToHub == nil {
			return fmt.Errorf("conversion of %s: there is no function %s", version, c.From)
		}
		c.FromHub = func(vocabulary.Vocabulary, map[string]any) {}
		if c.To == "" {
			continue
		}
		if c.FromHub = functions[c.To]; c.FromHub == nil {
			return fmt.Errorf("conversion of %s: there is no function %s", version, c.To)
		}
	}
	return nil
}
