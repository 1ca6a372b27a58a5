// Package quantity parses untrusted quantities, and refuses those whose arithmetic
// would be unbounded: 1e2000000000, a quantity of twelve characters, has two thousand
// million digits, which comparing or adding it writes out. It serves "Resources and
// their fields" of the specification.
package quantity

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxText is the limit on the text of a quantity, in bytes.
	maxText = 64
	// maxExponent is the limit on a decimal exponent, in either direction. The largest
	// suffix, E, is 18.
	maxExponent = 30
)

// Errors of Parse, in addition to those of resource.ParseQuantity.
var (
	ErrTooLong  = fmt.Errorf("a quantity may not be longer than %d characters", maxText)
	ErrExponent = fmt.Errorf("the exponent of a quantity must be between -%d and %d", maxExponent, maxExponent)
)

// Parse is resource.ParseQuantity for untrusted text.
func Parse(text string) (resource.Quantity, error) {
	if len(text) > maxText {
		return resource.Quantity{}, ErrTooLong
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && i+1 < len(text) && text[i+1] != 'i' { // else it is the suffix E or Ei
		exponent, err := strconv.ParseInt(text[i+1:], 10, 32)
		if errors.Is(err, strconv.ErrRange) || err == nil && (exponent > maxExponent || exponent < -maxExponent) {
			return resource.Quantity{}, ErrExponent
		}
	}
	return resource.ParseQuantity(text)
}

// unbounded is the least exponent of a quantity that takes seconds to be compared or added.
const unbounded = 1_000_000

var exponential = regexp.MustCompile(`^[+-]?[0-9.]+[eE]([+-]?[0-9]+)$`)

// Unbounded reports whether text, which need not be a quantity, is one that takes seconds or more to
// be compared or added where it is not parsed by Parse.
func Unbounded(text string) bool {
	if len(text) < len("1e1000000") || !strings.ContainsAny(text, "eE") {
		return false
	}
	found := exponential.FindStringSubmatch(text)
	if found == nil {
		return false
	}
	exponent, err := strconv.ParseInt(found[1], 10, 64)
	return err != nil || exponent >= unbounded || exponent <= -unbounded
}

// ParseJSON is Parse for JSON: a string or a number. null is zero.
func ParseJSON(raw []byte) (resource.Quantity, error) {
	text := string(raw)
	switch {
	case text == "null":
		return resource.Quantity{}, nil
	case strings.HasPrefix(text, `"`):
		if err := json.Unmarshal(raw, &text); err != nil {
			return resource.Quantity{}, err
		}
	}
	return Parse(text)
}

// ParseMap is ParseJSON for a JSON object of quantities. The result of null is nil.
func ParseMap(raw []byte) (map[string]resource.Quantity, error) {
	var texts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &texts); err != nil || texts == nil {
		return nil, err
	}
	all := make(map[string]resource.Quantity, len(texts))
	for name, text := range texts {
		q, err := ParseJSON(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = q
	}
	return all, nil
}
