package table

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/cell"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/rawjson"
)

// customCell returns the function that computes the cell of a column of a custom type, as Kubernetes
// does: the first result of the path, as text in a column of strings, null in others if it is of another
// type. Plain names of members are looked up in the JSON; other paths, which are rare, are evaluated on the
// decoded object. An invalid path finds nothing; definitions with one are rejected before.
func customCell(of, text string) func(*cell.Object) any {
	parsed := jsonpath.New("column").AllowMissingKeys(true)
	if parsed.Parse("{"+text+"}") != nil {
		return func(*cell.Object) any { return nil }
	}
	print := func(value any) any {
		var printed strings.Builder
		if parsed.PrintResults(&printed, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return printed.String()
	}
	if of != "string" {
		print = func(value any) any { return typedCell(of, value) }
	}
	names, plain := plainNames(text)
	if !plain {
		return func(o *cell.Object) any {
			if value, found := firstResult(parsed, o.Value); found {
				return print(value)
			}
			return nil
		}
	}
	return func(o *cell.Object) any {
		v := path(names).find(o)
		if of == "string" && len(v) > 0 && v[0] == '"' {
			return json.RawMessage(v)
		}
		var value any
		if len(v) == 0 || utiljson.Unmarshal(v, &value) != nil {
			return nil
		}
		return print(value)
	}
}

// firstResult evaluates a path on an object.
func firstResult(path *jsonpath.JSONPath, object rawjson.Value) (value any, found bool) {
	var decoded any
	if utiljson.Unmarshal(object, &decoded) != nil {
		return nil, false
	}
	results, err := path.FindResults(decoded)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil, false
	}
	first := results[0][0]
	if !first.IsValid() {
		return nil, true
	}
	if !first.CanInterface() {
		return nil, false
	}
	return first.Interface(), true
}

// typedCell returns a value in a column of a type other than string; nil if it does not fit.
func typedCell(of string, value any) any {
	switch v := value.(type) {
	case int64:
		switch of {
		case "integer":
			return v
		case "number":
			return encodedCell(float64(v))
		}
	case float64:
		switch of {
		case "integer":
			return int64(v)
		case "number":
			return encodedCell(v)
		}
	case bool:
		if of == "boolean" {
			return encodedCell(v)
		}
	case string:
		if of == "date" {
			return dateCell(v)
		}
	}
	return nil
}

func encodedCell(value any) any {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return json.RawMessage(encoded)
}

// dateCell returns the time whose age is shown. The empty text is the zero time, whose age is unknown.
func dateCell(text string) any {
	var t metav1.Time
	if t.UnmarshalQueryParameter(text) != nil {
		return "<invalid>"
	}
	if t.IsZero() {
		return cell.Unknown
	}
	return t.Time
}
