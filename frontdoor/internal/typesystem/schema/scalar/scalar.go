// Package scalar reads the values that JSON has no types for: times, quantities and
// binary data. Each function returns the value as it is kept, or what is wrong with it.
// It knows neither schemas nor paths. It serves "Resources and their fields" of the
// specification.
package scalar

import (
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/services/quantity"
)

// Time reads a time in RFC 3339, which is kept in UTC.
func Time(s string) (any, string) { return inUTC(s, time.RFC3339) }

// MicroTime reads a time in RFC 3339 with exactly six digits of a second, which is kept
// in UTC.
func MicroTime(s string) (any, string) {
	if _, err := time.Parse(metav1.RFC3339Micro, s); err != nil {
		return nil, fmt.Sprintf("%q is not a time in RFC 3339 with microseconds", s)
	}
	return inUTC(s, metav1.RFC3339Micro)
}

func inUTC(s, layout string) (any, string) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return nil, fmt.Sprintf("%q is not a time in RFC 3339", s)
	}
	return t.UTC().Format(layout), ""
}

// Binary reads base64 text, which is kept without line breaks.
func Binary(s string) (any, string) {
	decoded, err := base64.StdEncoding.DecodeString(s)
	switch {
	case err != nil:
		return nil, "illegal base64 data"
	case strings.ContainsAny(s, "\r\n"):
		return base64.StdEncoding.EncodeToString(decoded), ""
	}
	return s, ""
}

// Quantity reads a quantity, which may be written as a number, and returns its canonical
// form. Amounts of resources are kept in thousandths at most.
func Quantity(value any, ofResource bool) (any, string) {
	var written string
	switch v := value.(type) {
	case string:
		written = v
	case int64, float64:
		written = fmt.Sprint(v)
	default:
		return nil, "expected a quantity, got " + Describe(value)
	}
	q, err := quantity.Parse(written)
	switch {
	case errors.Is(err, quantity.ErrExponent), errors.Is(err, quantity.ErrTooLong):
		return nil, err.Error()
	case err != nil:
		return nil, fmt.Sprintf("%q is not a quantity", written)
	}
	if ofResource {
		q.RoundUp(resource.Milli)
	}
	return q.String(), ""
}

// Mismatch returns what is wrong with a value that is not of the required kind: "an object", which
// may be a dictionary, or "a list". In patched objects these are the messages of Kubernetes.
func Mismatch(want string, value any, patched, dictionary bool) string {
	got := reflect.ValueOf(value).Kind()
	switch {
	case !patched || value == nil:
		return "expected " + want + ", got " + Describe(value)
	case dictionary:
		return fmt.Sprintf("cannot restore map from %v", got)
	case want == "a list":
		return fmt.Sprintf("cannot restore slice from %v", got)
	default:
		return fmt.Sprintf("cannot restore struct from: %v", got)
	}
}

// Empty reports whether a list or map has no members, or a scalar is zero.
func Empty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case int64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Describe names the type of a JSON value in messages.
func Describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
