// Package patches implements JSON patch, merge patch and strategic merge patch. Each
// function returns a new object and does not modify the current one; errors are a Status.
// Managed fields are left to the caller. It serves "Patch content types" of the
// specification.
package patches

import (
	"context"
	"encoding/json"
	"strings"

	kjson "sigs.k8s.io/json"

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

// Strict returns what a strict decoder finds in a JSON patch: members of operations that are
// unknown or occur twice.
func Strict(body []byte) (found []string) {
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	strict, err := kjson.UnmarshalStrict(body, &operations)
	if err != nil {
		return nil // JSON reports it
	}
	for _, e := range strict {
		found = append(found, "json patch "+e.Error())
	}
	return found
}

// DuplicateKeys returns the errors of strictly decoding YAML, each with its line. They are nil
// for nil.
func DuplicateKeys(err error) (all []string) {
	if err == nil {
		return nil
	}
	known := map[string]bool{} // a body of any size may repeat one key in each of its lines
	for line := range strings.SplitSeq(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n"), "\n") {
		if line = strings.TrimSpace(line); !known[line] {
			known[line] = true
			all = append(all, line)
		}
	}
	return all
}
