package budget

import (
	"context"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

func TestOver(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	b, steps := New(ctx), 0
	for !b.Over() {
		if steps++; steps > stride {
			t.Fatal("the walk does not end with its context")
		}
	}
	if !services.IsReason(b.Err(), services.ReasonTimeout) {
		t.Errorf("got %v, want %s", b.Err(), services.ReasonTimeout)
	}
	if l, ok := limit.Of(b.Err()); !ok || l != limit.Time {
		t.Errorf("counted as %q, want %q", l, limit.Time)
	}
	b = New(t.Context())
	for range 3 * stride {
		if b.Over() || b.Err() != nil {
			t.Fatalf("a budget is over while its context is not: %v", b.Err())
		}
	}
}

func TestAdd(t *testing.T) {
	b := New(t.Context())
	if !b.Add(maxAdded) || b.Err() != nil {
		t.Error("the budget is smaller than its limit")
	}
	if b.Add(1) || !services.IsReason(b.Err(), services.ReasonRequestEntityTooLarge) {
		t.Errorf("got %v, want %s", b.Err(), services.ReasonRequestEntityTooLarge)
	}
	if l, ok := limit.Of(b.Err()); !ok || l != limit.Defaults {
		t.Errorf("counted as %q, want %q", l, limit.Defaults)
	}
	if b.Over() {
		t.Error("a walk ends because defaults are left out")
	}
	var none *Budget
	if !none.Add(1<<40) || none.Over() || none.Err() != nil {
		t.Error("no budget is a limit")
	}
}
