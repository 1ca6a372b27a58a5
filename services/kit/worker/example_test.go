package worker_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/portico-platform/portico/services/kit/worker"
)

// A controller reconciles the keys of a queue. A key that is added again while it waits is
// reconciled once; one whose reconcile returns a delay is reconciled again after it.
func ExampleQueue() {
	ctx, stop := context.WithCancel(context.Background())
	queue := worker.NewQueue[string]("example", slog.New(slog.DiscardHandler))
	queue.Add("web", "web", "web")
	tries := 0
	queue.Run(ctx, 1, func(_ context.Context, key string) (time.Duration, error) {
		tries++
		fmt.Println("reconcile", key)
		if tries == 1 {
			return time.Millisecond, nil // reconcile again soon
		}
		stop()
		return 0, nil
	})
	// Output:
	// reconcile web
	// reconcile web
}
