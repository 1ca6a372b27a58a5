// Package races marks errors of writes that were lost to another writer, after which the newest
// state is read and the write is attempted again.
package races

import (
	"errors"
	"fmt"

	"github.com/portico-platform/portico/services"
)

// Err is the error of an attempt that conflicts with another writer although the request is
// unconditional, or whose result is discarded.
var Err = errors.New("another writer was faster")

// Lost reports whether an error is Err.
func Lost(err error) bool { return errors.Is(err, Err) }

// Mark marks a lost compare-and-swap. The error still is a Conflict (409), which the client gets
// if no further attempt follows.
func Mark(err error) error {
	if services.IsConflict(err) {
		return fmt.Errorf("%w: %w", Err, err)
	}
	return err
}
