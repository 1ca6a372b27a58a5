// Package corpus makes the requests of the comparison. Most come from what the
// servers publish: a kind that both serve joins by itself, with a manifest made
// from its required fields. Where these do not do, manifests/ has one by hand, and
// requests/ has what only some kinds can do. The package sends nothing and judges
// nothing.
package corpus

import (
	"encoding/json"
)

// Case is a sequence of requests about one kind; each server gets all of them, in
// their order.
type Case struct {
	Kind  *Kind
	Name  string
	Steps []Step
	// Settles is the path of an object that the servers themselves go on changing: a
	// step begins when they are done with it.
	Settles string
}

// Step is one request. Body may be a string or bytes, which are sent as they are,
// an object, which is sent as JSON, or a func(Seen) any that makes one of them.
type Step struct {
	Name, Method, Path, Query string
	// Accept and Type are the headers Accept and Content-Type; JSON when empty.
	Accept, Type string
	Body         any
	// Needs is the step without whose success, on both sides, this one says nothing.
	Needs string
}

// Seen is what a server answered so far, by the name of the step: the body, when it
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
	content, _ := json.Marshal(body) // made of what JSON has
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

// child returns the object at a name, and makes it if there is none.
func child(o object, name string) object {
	inner, ok := o[name].(object)
	if !ok {
		inner = object{}
		o[name] = inner
	}
	return inner
}

// with returns a copy that a function has changed.
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
