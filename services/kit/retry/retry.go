// Package retry waits between the tries of something that may work later. It decides
// how long; what is tried, and which errors are worth another try, is the caller's.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pause waits for d. It reports whether d has passed before ctx ended.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Backoff makes pauses that double from a first one up to a limit. Each is up to half
// longer or shorter, so that many who wait for the same thing do not all try again at
// once. It belongs to one goroutine.
type Backoff struct{ pauses *backoff.ExponentialBackOff }

// NewBackoff returns a Backoff whose pauses are between about first and most.
func NewBackoff(first, most time.Duration) *Backoff {
	return &Backoff{&backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: most, Multiplier: 2, RandomizationFactor: 0.5}}
}

// Next returns how long to wait before the next try.
func (b *Backoff) Next() time.Duration { return b.pauses.NextBackOff() }

// Pause waits before the next try. It reports whether to try: not when ctx has ended.
func (b *Backoff) Pause(ctx context.Context) bool { return Pause(ctx, b.Next()) }

// Reset makes the next pause the first again: a try has worked.
func (b *Backoff) Reset() { b.pauses.Reset() }
