package validations

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/services/quantity"
)

// parsesQuantities reports whether a rule of a schema may call quantity, whose results can take
// minutes to be compared: neither the cost nor the context of an evaluation ends that.
func parsesQuantities(raw map[string]any, extension string) (found bool) {
	list, _ := raw[extension+"validations"].([]any)
	for _, item := range list {
		rule, _ := item.(map[string]any)
		for _, name := range []string{"rule", "messageExpression"} {
			text, _ := rule[name].(string)
			found = found || strings.Contains(text, "uantity") // also of isQuantity
		}
	}
	below(raw, func(_, _ string, s map[string]any) { found = found || parsesQuantities(s, extension) })
	return found
}

// unboundedIn returns the error of a quantity in a value that rules cannot calculate with; nil if
// there is none.
func unboundedIn(value any, at *field.Path) *field.Error {
	switch v := value.(type) {
	case string:
		if quantity.Unbounded(v) {
			return field.Invalid(at, v, "rules of the type parse quantities, and cannot calculate with such an exponent")
		}
	case []any:
		for i, item := range v {
			if found := unboundedIn(item, at.Index(i)); found != nil {
				return found
			}
		}
	case map[string]any:
		for name, member := range v {
			if found := unboundedIn(member, at.Child(name)); found != nil {
				return found
			}
		}
	}
	return nil
}
