package schema

import (
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// An update keeps values that the schema of a custom type no longer accepts, as long
// as they stay as they are stored (from release 1.36). A value is compared with the stored
// one at the same place: below properties and maps, and in lists whose items have keys.

// custom validates a value of a custom type and all values below it. It drops the errors of
// a value that stays as it is stored.
func (c *check) custom(n *node, value, old any, at *field.Path) {
	if !c.ratchets || old == nil {
		c.customValue(n, value, old, at)
		return
	}
	before, outside := c.Count(), c.changed
	c.changed = false
	c.customValue(n, value, old, at)
	if c.Count() > before && !c.changed { // otherwise a value below is known to differ
		if tree.Equal(value, old) { // not as of other types: zero and empty values are not absent ones
			c.Cut(before)
		} else {
			c.changed = true
		}
	}
	c.changed = c.changed || outside
}

// identify sets how the values below a schema are found in the stored object.
func (s *structure) identify(extensions spec.Extensions, prefix string) {
	s.atomic = extensions[prefix+"map-type"] == "atomic"
	keys, _ := extensions[prefix+"list-map-keys"].([]any)
	for _, key := range keys {
		if name, ok := key.(string); ok {
			s.keys = append(s.keys, name)
		}
	}
}

// before returns the stored items of a list by their keys; nil if they have none.
func (c *check) before(s *structure, old any) map[string]any {
	items, _ := old.([]any)
	if !c.ratchets || len(s.keys) == 0 || len(items) == 0 {
		return nil
	}
	found := make(map[string]any, len(items))
	for _, item := range items {
		key, _, _ := rules.IdentityOf(item, s.keys, nil)
		if _, twice := found[key]; !twice {
			found[key] = item
		}
	}
	return found
}
