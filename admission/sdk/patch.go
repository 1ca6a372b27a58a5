package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/tree"
)

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

var (
	errReadOnly = errors.New("only Mutate may change the object")
	errNoPath   = errors.New("the path is empty")
)

// Set sets a field of the new object. The path consists of names of members (string) and
// indexes of items (int); the index after the last item appends. Objects and lists that are
// missing on the way are created. The value is anything that encodes as JSON. All other
// fields, also those that the service does not know, stay as they are. Setting a field to
// the value that it has is no change.
func (r *Review) Set(value any, path ...any) error {
	object, err := r.writable(path)
	if err != nil {
		return fmt.Errorf("setting %s: %w", pointer(path), err)
	}
	plain, err := plainValue(value)
	if err != nil {
		return fmt.Errorf("setting %s: %w", pointer(path), err)
	}
	op, err := set(object, plain, path)
	if err != nil {
		return fmt.Errorf("setting %s: %w", pointer(path), err)
	}
	if op != nil {
		r.operations = append(r.operations, *op)
	}
	return nil
}

// Remove removes a field or an item from the new object. Removing what is missing is no
// change.
func (r *Review) Remove(path ...any) error {
	object, err := r.writable(path)
	if err != nil {
		return fmt.Errorf("removing %s: %w", pointer(path), err)
	}
	at := place{node: object}
	for i, step := range path {
		next, exists, err := at.member(step)
		if err != nil || !exists {
			return nil //nolint:nilerr // a path through a value of another type does not exist
		}
		if i < len(path)-1 {
			at = next
			continue
		}
		if list, ok := at.node.([]any); ok {
			at.put(slices.Delete(list, step.(int), step.(int)+1))
		} else {
			delete(at.node.(map[string]any), step.(string))
		}
		r.operations = append(r.operations, operation{Op: "remove", Path: pointer(path)})
	}
	return nil
}

// writable returns the decoded object for a change at the path.
func (r *Review) writable(path []any) (map[string]any, error) {
	switch {
	case r.readOnly:
		return nil, errReadOnly
	case len(path) == 0:
		return nil, errNoPath
	case r.Object == nil:
		return nil, errNoObject
	case r.object == nil:
		object, err := tree.Decode(r.Object)
		if err != nil {
			return nil, err
		}
		r.object = object
	}
	return r.object, nil
}

// set sets a value in the object and returns the patch operation, nil if nothing changed.
func set(object map[string]any, value any, path []any) (*operation, error) {
	at := place{node: object}
	for i, step := range path {
		next, exists, err := at.member(step)
		if err != nil {
			return nil, fmt.Errorf("%s %w", pointer(path[:i]), err)
		}
		last := i == len(path)-1
		if exists && (last || next.node != nil) {
			if !last {
				at = next
				continue
			}
			if tree.Equal(next.node, value) {
				return nil, nil
			}
			next.put(value)
			return &operation{"replace", pointer(path), tree.Copy(value)}, nil
		}
		nested, err := nest(value, path[i+1:])
		if err != nil {
			return nil, err
		}
		next.put(nested)
		op := &operation{"add", pointer(path[:i+1]), tree.Copy(nested)}
		if exists { // a null
			op.Op = "replace"
		}
		return op, nil
	}
	return nil, errNoPath
}

// place is a node of the object and how it is replaced in its parent.
type place struct {
	node any
	put  func(any)
}

// member returns the place of a member or an item, and whether it exists.
func (p place) member(step any) (place, bool, error) {
	switch node := p.node.(type) {
	case map[string]any:
		name, ok := step.(string)
		if !ok {
			return place{}, false, fmt.Errorf("is an object and has no item %v", step)
		}
		child, exists := node[name]
		return place{child, func(v any) { node[name] = v }}, exists, nil
	case []any:
		index, ok := step.(int)
		if !ok || index < 0 || index > len(node) {
			return place{}, false, fmt.Errorf("is a list of %d items and has no item %v", len(node), step)
		}
		if index == len(node) {
			return place{nil, func(v any) { p.put(append(node, v)) }}, false, nil
		}
		return place{node[index], func(v any) { node[index] = v }}, true, nil
	}
	return place{}, false, fmt.Errorf("is a value and has no member %v", step)
}

// nest returns the value inside new objects and lists for the rest of a path.
func nest(value any, path []any) (any, error) {
	for _, step := range slices.Backward(path) {
		switch step := step.(type) {
		case string:
			value = map[string]any{step: value}
		case int:
			if step != 0 {
				return nil, fmt.Errorf("a new list has no item %d", step)
			}
			value = []any{value}
		default:
			return nil, fmt.Errorf("a path consists of strings and ints, not %T", step)
		}
	}
	return value, nil
}

// plainValue returns a value as decoded JSON.
func plainValue(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool, int64:
		return v, nil
	case int:
		return int64(v), nil
	}
	raw, err := json.Marshal(map[string]any{"": value})
	if err != nil {
		return nil, err
	}
	decoded, err := tree.Decode(raw)
	return decoded[""], err
}

// pointer returns a path as a JSON pointer (RFC 6901).
func pointer(path []any) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		switch step := step.(type) {
		case int:
			b.WriteString(strconv.Itoa(step))
		case string:
			b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
		default:
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}
