package services

import "context"

// maxAttempts bounds RetryLost. Every lost attempt means that another client's write
// succeeded.
const maxAttempts = 100

// RetryLost calls swap, a compare-and-swap that begins by reading the newest state, and
// retries it while lost reports that its error is a conflict with another writer. It
// returns the last error, also that of a lost attempt after maxAttempts or when ctx has
// ended.
func RetryLost(ctx context.Context, lost func(error) bool, swap func() error) error {
	for attempt := 1; ; attempt++ {
		err := swap()
		if err == nil || !lost(err) || attempt >= maxAttempts || ctx.Err() != nil {
			return err
		}
	}
}

// IsConflict reports whether err is a Conflict (409).
func IsConflict(err error) bool { return IsReason(err, ReasonConflict) }
