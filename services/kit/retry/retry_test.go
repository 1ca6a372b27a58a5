package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services/kit/retry"
)

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if !retry.Pause(ctx, time.Second) || time.Since(start) != time.Second {
			t.Errorf("a pause of a second took %s", time.Since(start))
		}
		if retry.Pause(ctx, time.Hour) || time.Since(start) != time.Minute {
			t.Errorf("a pause lasted until %s, the context ended after a minute", time.Since(start))
		}
		if retry.Pause(ctx, 0) {
			t.Error("a pause returned true although the context has ended")
		}
	})
}

// TestEvery: the first call is at once, errors are given away, and the end is no error.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
		defer cancel()
		start, calls, failures := time.Now(), 0, 0
		retry.Every(ctx, time.Minute, func(context.Context) error {
			if since := time.Since(start); since != time.Duration(calls)*time.Minute {
				t.Errorf("call %d after %s", calls, since)
			}
			if calls++; calls == 2 {
				return errors.New("once")
			}
			return nil
		}, func(error) { failures++ })
		if calls != 3 || failures != 1 || time.Since(start) != 150*time.Second {
			t.Errorf("%d calls, %d failures in %s", calls, failures, time.Since(start))
		}
		retry.Every(ctx, time.Minute, func(context.Context) error { return ctx.Err() }, func(err error) { t.Errorf("the end is given away: %v", err) })
	})
}

// TestBackoff checks every pause against its bounds: half to one and a half times the
// doubled value.
func TestBackoff(t *testing.T) {
	const first, most = 100 * time.Millisecond, time.Second
	b := retry.NewBackoff(first, most)
	for range 3 {
		middle, different := first, false
		for range 20 {
			pause := b.Next()
			if pause < middle/2 || pause > middle*3/2+1 {
				t.Errorf("a pause of %s, want about %s", pause, middle)
			}
			different = different || pause != middle
			middle = min(2*middle, most)
		}
		if !different {
			t.Error("the pauses have no jitter")
		}
		b.Reset()
	}
}
