package typesystem

import "github.com/portico-platform/portico/services/tree"

// Copy returns a deep copy.
func Copy(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	return tree.Copy(object).(map[string]any)
}
