package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"

	"github.com/portico-platform/portico/services"
)

type partKey struct{}

// WithPart returns the context of a call whose caller may change only one field of an
// object, such as status.used. The server of the contract enforces it.
func WithPart(ctx context.Context, part string) context.Context {
	return context.WithValue(ctx, partKey{}, part)
}

// callersPart returns the field that the caller may change, empty if any.
func callersPart(ctx context.Context) string {
	part, _ := ctx.Value(partKey{}).(string)
	return part
}

// onlyPart returns r if it changes only one field of the object, else Forbidden. The
// revision of the update ensures that it replaces the state that it was compared with.
func (s storeServer) onlyPart(ctx context.Context, r services.UpdateRequest, part string) (services.UpdateRequest, error) {
	stored, err := s.impl.Get(ctx, services.GetRequest{Key: r.Key})
	if err != nil {
		return r, err
	}
	if stored.Revision != r.Revision {
		return r, services.ConflictModified(r.Key.Group, r.Key.Resource, r.Key.Name)
	}
	var before, after map[string]any
	if err := errors.Join(decodeExactly(stored.JSON, &before), decodeExactly(r.Content.JSON, &after)); err != nil {
		return r, services.BadRequest("%s: %v", r.Key, err)
	}
	// The compared tree is stored, and not the bytes of the request, which may contain a member twice.
	if r.Content.JSON, err = json.Marshal(after); err != nil {
		return r, err
	}
	for _, object := range []map[string]any{before, after} {
		remove(object, []string{"metadata", "resourceVersion"})
		remove(object, strings.Split(part, "."))
	}
	c := r.Content
	if stored.UID != c.UID || !maps.Equal(stored.Labels, c.Labels) || !maps.Equal(stored.Fields, c.Fields) || !reflect.DeepEqual(before, after) {
		return r, services.Forbidden(r.Key.Group, r.Key.Resource, r.Key.Name, "the caller may change only "+part)
	}
	return r, nil
}

// decodeExactly decodes JSON and preserves numbers as text.
func decodeExactly(object []byte, into *map[string]any) error {
	decoder := json.NewDecoder(bytes.NewReader(object))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// remove removes the member at a path from an object.
func remove(object map[string]any, path []string) {
	for _, member := range path[:len(path)-1] {
		object, _ = object[member].(map[string]any)
	}
	delete(object, path[len(path)-1])
}
