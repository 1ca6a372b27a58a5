package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/kit/worker"
)

// TestQueue runs a queue with keys that are reconciled once, again, later and with errors.
func TestQueue(t *testing.T) {
	var log strings.Builder
	q := worker.NewQueue[string]("test", slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	attempts := map[string]*atomic.Int32{"once": {}, "again": {}, "later": {}, "fails": {}}
	var left atomic.Int32
	left.Store(1 + 3*3)
	q.Add("once", "again", "later", "fails")
	q.Run(ctx, 2, func(_ context.Context, key string) (time.Duration, error) {
		n := attempts[key].Add(1)
		if n <= 3 && left.Add(-1) == 0 {
			cancel()
		}
		switch {
		case n >= 3 || key == "once":
			return 0, nil
		case key == "again":
			return time.Millisecond, nil
		case key == "later":
			return 0, worker.ErrLater
		}
		return 0, errors.New("broken")
	})
	if left.Load() != 0 {
		t.Fatalf("%d attempts are missing", left.Load())
	}
	if lines := log.String(); strings.Count(lines, "broken") != 2 || strings.Count(lines, "\n") != 2 {
		t.Errorf("log:\n%s", lines)
	}
}
