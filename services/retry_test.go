package services

import (
	"context"
	"errors"
	"testing"
)

// TestRetryLost: only lost attempts are retried, until the context ends and at most
// maxAttempts times.
func TestRetryLost(t *testing.T) {
	conflict, other := error(Conflict("", "pods", "a", "x")), errors.New("other")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, x := range map[string]struct {
		ctx   context.Context
		err   func(attempt int) error
		calls int
		want  error
	}{
		"won at once":   {t.Context(), func(int) error { return nil }, 1, nil},
		"won at last":   {t.Context(), func(n int) error { return map[bool]error{true: conflict}[n < 5] }, 5, nil},
		"another error": {t.Context(), func(int) error { return other }, 1, other},
		"never won":     {t.Context(), func(int) error { return conflict }, maxAttempts, conflict},
		"canceled":      {over, func(int) error { return conflict }, 1, conflict},
	} {
		calls := 0
		err := RetryLost(x.ctx, IsConflict, func() error { calls++; return x.err(calls) })
		if !errors.Is(err, x.want) || calls != x.calls {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, err, calls, x.want, x.calls)
		}
	}
}
