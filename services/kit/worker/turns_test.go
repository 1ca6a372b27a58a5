package worker

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

// TestTenantsTakeTurns: the keys of a tenant with many do not delay those of others, and none is lost.
func TestTenantsTakeTurns(t *testing.T) {
	tenant := func(key string) string { name, _, _ := strings.Cut(key, "/"); return name }
	q := newQueue("test", clock.RealClock{}, newTurns(tenant), slog.New(slog.DiscardHandler))
	const many = 1000
	for n := range many {
		q.Add(fmt.Sprintf("many/%d", n))
	}
	q.Add("one/a", "two/a", "two/b", "two/a")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var order []string
	q.Run(ctx, 1, func(_ context.Context, key string) (time.Duration, error) {
		if order = append(order, key); len(order) == many+3 {
			cancel()
		}
		return 0, nil
	})
	if want := []string{"many/0", "one/a", "two/a", "many/1", "two/b", "many/2"}; !slices.Equal(order[:min(6, len(order))], want) {
		t.Errorf("the first are %q, want %q", order[:min(6, len(order))], want)
	}
	if slices.Sort(order); len(slices.Compact(order)) != many+3 {
		t.Errorf("%d keys, want %d", len(order), many+3)
	}
}
