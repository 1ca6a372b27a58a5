// Package patches implements JSON patch, merge patch and strategic merge patch. Each
// function returns a new object and does not modify the current one; errors are a Status.
// Managed fields are left to the caller. It serves "Patch content types" of the
// specification.
package patches

import (
	"context"
	"encoding/json"

	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/tree"
)

// JSON applies a JSON patch (RFC 6902). Its errors are those of package jsonpatch.
func JSON(ctx context.Context, current map[string]any, body []byte) (map[string]any, error) {
	encoded, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	patched, err := jsonpatch.Apply(ctx, encoded, body)
	if err != nil {
		return nil, err
	}
	object, err := tree.Decode(patched)
	if err != nil || object == nil {
		return nil, jsonpatch.Unprocessable("the patched object is no object any more")
	}
	return object, nil
}
