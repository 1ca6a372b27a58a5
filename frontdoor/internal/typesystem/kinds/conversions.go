package kinds

import (
	"fmt"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Conversion converts objects of one version of a kind to its best version and back, so
// that any two versions are converted by way of the best one. An object that is converted
// to the best version and back loses nothing.
type Conversion struct {
	// From and To are the names of the functions; To may be empty when the objects of the
	// best version need no change.
	From string `json:"from"`
	To   string `json:"to"`

	// ToBest and FromBest are the functions, once they are resolved.
	ToBest, FromBest ConvertFunc `json:"-"`
}

// ConvertFunc modifies the object that it is given and shares its parts: it replaces what
// it changes below the first level (package edit). It leaves apiVersion and kind alone.
type ConvertFunc func(v vocabulary.Vocabulary, object map[string]any)

func (k *Kind) resolveConversions(functions map[string]ConvertFunc) error {
	for version, c := range k.Conversions {
		if c.ToBest = functions[c.From]; c.ToBest == nil {
			return fmt.Errorf("conversion of %s: there is no function %s", version, c.From)
		}
		c.FromBest = func(vocabulary.Vocabulary, map[string]any) {}
		if c.To == "" {
			continue
		}
		if c.FromBest = functions[c.To]; c.FromBest == nil {
			return fmt.Errorf("conversion of %s: there is no function %s", version, c.To)
		}
	}
	return nil
}
