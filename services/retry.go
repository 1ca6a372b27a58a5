package services

import "context"

// maxAttempts bounds RetryLost. Every attempt that is lost means that somebody else's
// write went through.
const maxAttempts = 100

// RetryLost calls a compare-and-swap that begins with the newest state, again and again
// while lost reports that its error is another writer's success. It returns the last
// error, also that of a lost attempt when ctx is over or there were too many.
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
