// Package patches holds the three kinds of patches that say what to change: JSON
// patch, merge patch and strategic merge patch. Each makes a new object of the
// current one, which is not modified, and refuses what does not fit as a Status.
// None of them knows who owns a field. It serves "Patch content types" of the
// specification.
package patches

import (
	"encoding/json"
	"net/http"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/services"
)

const (
	// maxOperations bounds the operations of one JSON patch.
	maxOperations = 10000
	// maxCopied bounds what the copy operations of one JSON patch add, in bytes:
	// without it a short patch doubles an object as often as it likes.
	maxCopied = 3 << 20
)

// boundCopies sets the library's limit, which is one for the process.
var boundCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = maxCopied })

// JSON applies a JSON patch (RFC 6902). A patch that makes no sense is a
// BadRequest, one that does not fit the object is 422.
func JSON(current map[string]any, body []byte) (map[string]any, error) {
	boundCopies()
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, services.BadRequest("error decoding patch: %v", err)
	}
	if len(patch) > maxOperations {
		return nil, services.TooLarge("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(patch))
	}
	encoded, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	patched, err := patch.Apply(encoded)
	if err != nil {
		return nil, unprocessable(err.Error())
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(patched, &object); err != nil || object == nil {
		return nil, unprocessable("the patched object is no object any more")
	}
	return object, nil
}

// unprocessable is the 422 of a patch that does not fit the object.
func unprocessable(why string) *services.Status {
	return &services.Status{Code: http.StatusUnprocessableEntity, Reason: services.ReasonInvalid,
		Message: "the server rejected our request due to an error in our request: " + why, Details: &services.StatusDetails{}}
}
