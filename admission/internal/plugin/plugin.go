// Package plugin holds the small admission plugins, one file each, and the table
// that orders all of them; the larger ones have packages of their own. A plugin
// changes or refuses one request by looking at it and at what is stored; it writes
// nothing (a quota's charge apart) and so is good for a dry run. It serves section
// "Admission plugins" of the specification.
package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
)

// Plugin is one row of the table. A plugin whose functions are both nil admits
// everything.
type Plugin struct {
	Name string
	// Default says whether it is on unless a flag turns it off.
	Default bool
	// Always marks a part of the API's own rules, which no flag names.
	Always bool
	// Deprecated plugins are named in the log when they are on.
	Deprecated bool
	// Mutate may change the object of the review. It may be asked twice about one
	// request, and must not mind what it did before.
	Mutate func(ctx context.Context, r *review.Review) error
	// Validate may only refuse.
	Validate func(ctx context.Context, r *review.Review) error
}
