package engine

import (
	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/tree"
)

// Copy returns a deep copy.
func Copy(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	return tree.Copy(object).(map[string]any)
}

// Decode reads an object's JSON; integers become int64.
func Decode(raw []byte) (map[string]any, error) {
	if object, ok := tree.Decode(raw); ok {
		return object, nil
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, err
	}
	return object, nil
}
