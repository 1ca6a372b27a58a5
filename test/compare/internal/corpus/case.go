// Package corpus generates the requests of the comparison. Most are derived from the
// discovery and OpenAPI documents of the servers: a kind that both serve is included
// automatically, with a manifest generated from its required fields. Where these do not
// suffice, package written has a hand-written one, and requests of single kinds. The package neither sends requests nor compares responses.
package corpus

import (
	"encoding/json"
)

// Case is a sequence of requests about one kind; each server receives all of them, in
// order.
type Case struct {
	Kind  *Kind
	Name  string
	Steps []Step
	// Unstable is the path of an object that the servers themselves change: the next step
	// begins when it has stopped changing.
	Unstable string
}

// Step is one request. Body may be a string or bytes, which are sent as they are,
// an object, which is sent as JSON, or a func(Seen) any that makes one of them.
type Step struct {
	Name, Method, Path, Query string
	// Accept and Type are the headers Accept and Content-Type; JSON when empty.
	Accept, Type string
	Body         any
	// Needs is the name of a step that must have succeeded on both servers; otherwise this
	// step is skipped.
	Needs string
}

// Seen contains the responses of a server so far, by the name of the step: the body, if it
// was a JSON object.
type Seen map[string]map[string]any

// Content returns the body that a step sends to a server.
func (s *Step) Content(seen Seen) []byte {
	body := s.Body
	if of, ok := body.(func(Seen) any); ok {
		body = of(seen)
	}
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return []byte(b)
	case []byte:
		return b
	}
	content, _ := json.Marshal(body) // only JSON types
	return content
}

// object is a JSON object.
type object = map[string]any

// clone returns a deep copy of a JSON value.
func clone[T any](value T) T {
	switch v := any(value).(type) {
	case object:
		out := make(object, len(v))
		for k, inner := range v {
			out[k] = clone(inner)
		}
		return any(out).(T)
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = clone(inner)
		}
		return any(out).(T)
	}
	return value
}

// child returns the object at a name, and creates it if it is missing.
func child(o object, name string) object {
	inner, ok := o[name].(object)
	if !ok {
		inner = object{}
		o[name] = inner
	}
	return inner
}

// with returns a copy changed by a function.
func with(o object, change func(object)) object {
	out := clone(o)
	change(out)
	return out
}

// labelled returns a copy with a label.
func labelled(o object, key, value string) object {
	return with(o, func(o object) { child(child(o, "metadata"), "labels")[key] = value })
}

// named returns a copy with a name.
func named(o object, name string) object {
	return with(o, func(o object) { child(o, "metadata")["name"] = name })
}
