// Package retry provides the pauses between retries. The caller decides what is retried and
// which errors are temporary.
package retry

import (
	"context"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pause waits for d. It returns false if ctx ends before.
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

// Every calls pass at once and then once in every period, until ctx ends. Errors of pass are
// given to failed, except when ctx has ended.
func Every(ctx context.Context, period time.Duration, pass func(context.Context) error, failed func(error)) {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for {
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// Backoff returns pauses that double from a first one up to a limit. Each is randomly up to
// half longer or shorter, so that many clients do not retry at the same time. It must be
// used by one goroutine only.
type Backoff struct{ pauses *backoff.ExponentialBackOff }

// NewBackoff returns a Backoff with pauses from first to most, plus or minus half.
func NewBackoff(first, most time.Duration) *Backoff {
	return &Backoff{&backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: most, Multiplier: 2, RandomizationFactor: 0.5}}
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration { return b.pauses.NextBackOff() }

// Pause waits for the next pause. It returns false if ctx ends before.
func (b *Backoff) Pause(ctx context.Context) bool { return Pause(ctx, b.Next()) }

// Reset makes the next pause the first one again. It is called after a success.
func (b *Backoff) Reset() { b.pauses.Reset() }
