package corpus

import (
	"net/http"
	"regexp"
)

// strictness tests each mode of fieldValidation with fields that are unknown, and with fields
// that occur twice, at any depth.
func strictness(k *Kind) Case {
	const name = "strictness"
	path := k.path(k.name(name))
	o := k.object(name)
	if k.full != nil {
		o = named(k.full, k.name(name))
	}
	unknown, twice := encoded(salted(o).(object)), repeated(encoded(o))
	steps := []Step{begin(k, name)}
	for _, mode := range []string{"Strict", "Warn", "Ignore"} {
		send := func(step, method, mediaType string, body any) {
			s := Step{Name: step + "-" + mode, Method: method, Path: path, Query: "dryRun=All&fieldValidation=" + mode, Type: mediaType, Body: body}
			if method == http.MethodPost {
				s.Path = k.collection()
			}
			if mediaType == applyPatch {
				s.Query += "&fieldManager=m&force=true"
			}
			steps = append(steps, s)
		}
		for _, body := range []struct{ name, text string }{{"unknown", unknown}, {"twice", twice}, {"both", repeated(unknown)}} {
			send("create-"+body.name, http.MethodPost, jsonType, body.text)
			send("create-yaml-"+body.name, http.MethodPost, yamlType, body.text)
			send("put-"+body.name, http.MethodPut, jsonType, body.text)
			send("merge-"+body.name, http.MethodPatch, mergePatch, body.text)
			send("strategic-"+body.name, http.MethodPatch, strategyPatch, body.text)
			send("apply-"+body.name, http.MethodPatch, applyPatch, body.text)
		}
		send("json", http.MethodPatch, jsonPatch, `[{"op":"add","path":"/unknown","value":{"a":1}},{"op":"add","path":"/metadata/unknown","value":[1]}]`)
		send("json-twice", http.MethodPatch, jsonPatch, `[{"op":"add","path":"/metadata/labels","value":{"a":"b","a":"c"}}]`)
		send("json-unknown-key", http.MethodPatch, jsonPatch, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"},"unknown":1}]`)
		send("case", http.MethodPost, jsonType, regexp.MustCompile(`"metadata":`).ReplaceAllString(encoded(o), `"Metadata":`))
		send("capital", http.MethodPut, jsonType, encoded(with(o, func(o object) { o["Spec"] = object{}; child(o, "metadata")["Labels"] = object{"a": "b"} })))
	}
	return k.named(name, append(steps, end(k, name)...))
}

// salted returns a copy of a value with an unknown field in each of its objects.
func salted(value any) any {
	switch v := value.(type) {
	case object:
		out := object{"unknown": "1"}
		for key, inner := range v {
			out[key] = salted(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = salted(inner)
		}
		return out
	}
	return value
}

// scalars matches the fields of JSON text that have a string as their value.
var scalars = regexp.MustCompile(`("[A-Za-z]+":"[^"\\]*")([,}])`)

// repeated returns JSON text in which each field with a string occurs twice.
func repeated(text string) string { return scalars.ReplaceAllString(text, "$1,$1$2") }

// conflicts tests applies by two managers that disagree about each field of a full object.
func conflicts(k *Kind) Case {
	const name = "conflicts"
	path := k.path(k.name(name))
	o := k.object(name)
	if k.full != nil {
		o = named(k.full, k.name(name))
	}
	apply := func(step, query string, body any) Step {
		return Step{Name: step, Method: http.MethodPatch, Path: path, Query: query, Type: applyPatch, Body: body}
	}
	other := with(o, func(o object) {
		for field, value := range o {
			if field != "metadata" && field != "apiVersion" && field != "kind" {
				o[field] = altered(value)
			}
		}
	})
	steps := []Step{
		apply("one", "fieldManager=one", o), apply("two", "fieldManager=two", other), apply("two-dry", "fieldManager=two&dryRun=All", other), apply("two-table", "fieldManager=two", other),
		{Name: "put", Method: http.MethodPut, Path: path, Query: "fieldManager=updater", Body: again("one", label("a", "b")), Needs: "one"},
		apply("three", "fieldManager=three", labelled(other, "a", "c")),
		apply("force", "fieldManager=two&force=true&dryRun=All", other),
		apply("less", "fieldManager=one", k.object(name)),
		{Name: "get", Method: http.MethodGet, Path: path},
	}
	steps[3].Accept = tableAccept()
	return k.named(name, append(steps, end(k, name)...))
}

// altered returns a copy of a value in which each string and number is another one.
func altered(value any) any {
	switch v := value.(type) {
	case object:
		out := make(object, len(v))
		for key, inner := range v {
			out[key] = altered(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = altered(inner)
		}
		return out
	case string:
		return v + "2"
	case float64:
		return v + 1
	case bool:
		return !v
	}
	return value
}
