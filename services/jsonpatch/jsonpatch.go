// Package jsonpatch applies JSON patches (RFC 6902) with limits on the number of
// operations, the size of copies, the size and depth of the result, and time. Patches
// come from clients and from admission webhooks, with the same limits. It serves "Patch
// content types" and "Admission plugins" of the specification.
package jsonpatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/limit"
	"github.com/portico-platform/portico/services/tree"
)

const (
	// MaxOperations is the limit on the operations of one patch.
	MaxOperations = 10000
	// MaxBytes is the limit on the size of a patch, on what its copy operations add,
	// and on the patched object. It is also the limit on a client's request body.
	MaxBytes = 3 << 20
)

// maxWork is the limit on the cost of a patch: operations times bytes of the object,
// because one operation may have to scan or move all of it. The bytes of the items that
// operations move have the same limit. It is about a second.
const maxWork = 2 << 30

// batchWork is the amount of work between two checks of the context.
const batchWork = 256 << 20

// pointerBytes is what moving one item of an array costs.
const pointerBytes = 8

// movedBytes returns how many bytes of items the operations move at most, including items that earlier
// operations have added: an insertion into an array, or a removal, moves all of its items. No operation
// joins two arrays, and a test succeeds against a value of its own size only.
func movedBytes(operations jsonpatch.Patch, object []byte) (sum int) {
	items := commas(object)
	for _, operation := range operations {
		kind := operation.Kind()
		path, _ := operation.Path()
		from, _ := operation.From()
		if moves(path) && kind != "test" && kind != "replace" || moves(from) && kind == "move" {
			sum += items * pointerBytes
		}
		if value := operation["value"]; value != nil {
			items = max(items, commas(*value))
		}
		items++
	}
	return sum
}

// commas returns the number of commas outside of strings, which is at least about that of the items
// of all arrays.
func commas(text []byte) (n int) {
	inString := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			inString = !inString
		case inString && text[i] == '\\':
			i++
		case !inString && text[i] == ',':
			n++
		}
	}
	return n
}

// moves reports whether a path ends with an index of an array.
func moves(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last != "" && (last[0] >= '0' && last[0] <= '9' || (last[0] == '-' || last[0] == '+') && len(last) > 1)
}

// Apply returns the JSON of the patched object. The errors are Statuses: BadRequest for
// a patch that cannot be decoded, and those of Patch.Apply.
func Apply(ctx context.Context, object, patch []byte) ([]byte, error) {
	decoded, err := Decode(patch)
	var tooLarge *services.Status
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case err != nil:
		return nil, services.BadRequest("error decoding patch: %v", err)
	}
	return decoded.Apply(ctx, object)
}

// Patch is a decoded patch.
type Patch struct{ operations jsonpatch.Patch }

// Decode decodes a patch. Whether its operations are valid is up to Apply, as in Kubernetes. The error is that of
// the JSON decoder, or the Status RequestEntityTooLarge for a patch of more than MaxBytes.
func Decode(patch []byte) (Patch, error) {
	if len(patch) > MaxBytes {
		return Patch{}, limit.Exceeded(limit.Patch, services.TooLarge("The allowed maximum size of a JSON patch is %d bytes, got %d", MaxBytes, len(patch)))
	}
	if _, err := ledger.Body.Check(patch); err != nil {
		return Patch{}, limit.Exceeded(limit.Patch, services.TooLarge("the JSON patch: %v", err))
	}
	operations, err := jsonpatch.DecodePatch(patch)
	return Patch{operations}, err
}

// Empty reports whether the patch has no operations.
func (p Patch) Empty() bool { return len(p.operations) == 0 }

// Apply returns the JSON of the patched object. The errors are Statuses: RequestEntityTooLarge
// for a patch beyond a limit, 422 for one that cannot be applied to the object or copies too much,
// Timeout when the context has ended.
func (p Patch) Apply(ctx context.Context, object []byte) ([]byte, error) {
	operations := p.operations
	if len(operations) > MaxOperations {
		return nil, limit.Exceeded(limit.Operations, services.TooLarge("The allowed maximum operations in a JSON patch is %d, got %d", MaxOperations, len(operations)))
	}
	if work := len(operations) * len(object); work > maxWork {
		return nil, limit.Exceeded(limit.Patch, services.TooLarge("At most %d operations of a JSON patch may be applied to an object of %d bytes, got %d: use fewer operations, or a merge patch",
			len(operations), maxWork/len(operations), len(object)))
	}
	if movedBytes(operations, object) > maxWork {
		return nil, limit.Exceeded(limit.Patch, services.TooLarge("The %d operations of the JSON patch move too many list items: use fewer operations, or a merge patch", len(operations)))
	}
	for len(operations) > 0 {
		if ctx.Err() != nil {
			return nil, limit.Exceeded(limit.Time, services.AsStatus(ctx.Err()))
		}
		batch := min(len(operations), max(16, batchWork/(len(object)+1)))
		patched, err := apply(operations[:batch], object)
		if err != nil {
			return nil, libraryError(err)
		}
		object = patched
		if len(object) > MaxBytes {
			return nil, limit.Exceeded(limit.Patched, services.TooLarge("The allowed maximum size of a patched object is %d bytes, got %d", MaxBytes, len(object)))
		}
		operations = operations[batch:]
	}
	if _, err := ledger.Body.Check(object); err != nil {
		return nil, limit.Exceeded(limit.Patched, services.TooLarge("the patched object: %v", err))
	}
	if err := tree.CheckDepth(object); err != nil {
		return nil, limit.Deep(err, Unprocessable(fmt.Sprintf("the patched object %v", err)))
	}
	return object, nil
}

// limitCopies sets the limit on copies, which the library has for the whole process.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = MaxBytes })

// errPanic is the error of a patch on which the library panics.
var errPanic = errors.New("the patch cannot be applied to the object")

// apply applies operations. The library dereferences nil pointers for some operations
// on the whole document.
func apply(operations jsonpatch.Patch, object []byte) (patched []byte, err error) {
	defer func() {
		if recover() != nil {
			patched, err = nil, errPanic
		}
	}()
	limitCopies()
	return operations.Apply(object)
}

// libraryError returns the 422 for an error of the library.
func libraryError(err error) error {
	var copied *jsonpatch.AccumulatedCopySizeError
	if errors.As(err, &copied) {
		return limit.Exceeded(limit.Patched, Unprocessable(err.Error()))
	}
	return Unprocessable(err.Error())
}

// Unprocessable returns the 422 of a patch that cannot be applied to the object, with
// the message of Kubernetes. The cause says why.
func Unprocessable(why string) *services.Status {
	return &services.Status{Code: http.StatusUnprocessableEntity, Reason: services.ReasonInvalid,
		Message: "the server rejected our request due to an error in our request",
		Details: &services.StatusDetails{Causes: []services.StatusCause{{Message: why}}}}
}

// TestFailed reports whether an error of Apply is a test operation that has failed.
func TestFailed(err error) bool {
	return err != nil && strings.HasSuffix(Why(err), jsonpatch.ErrTestFailed.Error())
}

// Why returns the reason why Apply has failed: the cause in its error if there is one, or else its message.
func Why(err error) string {
	if status := services.AsStatus(err); status.Details != nil && len(status.Details.Causes) > 0 {
		return status.Details.Causes[0].Message
	}
	return err.Error()
}
