// Package plugin holds the small admission plugins, one file each, and the table that orders all plugins; the
// larger ones have separate packages. A plugin mutates or rejects one request, based on the request and stored
// objects. Only ResourceQuota writes, and not in a dry run. It implements section "Admission plugins" of the
// specification.
package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
)

// Plugin is one row of the table. A plugin whose functions are both nil admits
// everything.
type Plugin struct {
	Name string
	// Default plugins are on unless a flag turns them off.
	Default bool
	// Always marks a part of the API's own rules, which no flag can turn off.
	Always bool
	// Deprecated plugins log a warning at start if they are on.
	Deprecated bool
	// Configured plugins need a configuration in the configuration file.
	Configured bool
	// Concerns reports whether the plugin may do anything about requests of the operation,
	// type, subresource and scope of a review, whatever else it contains; nil: it may about
	// all. Requests that concern no plugin are not sent to admission.
	Concerns func(r *review.Review) bool
	// Idle reports whether the plugin, although concerned with requests like that of a review, does
	// nothing about them in its namespace until the namespace or a ResourceQuota in it changes; nil: it
	// may do something.
	Idle func(r *review.Review) bool
	// Final plugins validate the object with its managedFields, as it will be stored. The
	// front door sends it so only after all mutations.
	Final bool
	// Effects marks plugins whose Validate does more than reject: it charges, counts or asks another
	// service. It is called once for a request, and last.
	Effects bool
	// Mutate may change the object of the review. It may be called twice for one request
	// and must be idempotent.
	Mutate func(ctx context.Context, r *review.Review) error
	// Validate may only reject the request.
	Validate func(ctx context.Context, r *review.Review) error
	// Refund gives back what Validate has charged for an object that is not stored.
	Refund func(ctx context.Context, charge []byte) error
}
