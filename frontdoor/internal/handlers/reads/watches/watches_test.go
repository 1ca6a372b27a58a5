package watches

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestRegistry(t *testing.T) {
	r := New()
	_, quiet := r.Open(t.Context(), Watch{User: "quiet", UserAgent: strings.Repeat("ä", 1000)})
	ctx, busy := r.Open(t.Context(), Watch{User: "busy"})
	_, stalled := r.Open(t.Context(), Watch{User: "stalled"})
	busy.Sending(100)
	busy.Sent(7)
	stalled.Sending(1)
	list, total := r.List(10)
	if total != 3 || list[0].User != "stalled" || list[0].StalledSeconds <= 0 || list[1].User != "busy" || list[1].Bytes != 100 ||
		list[1].Revision != 7 || list[1].StalledSeconds != 0 || len(list[2].UserAgent) > maxText {
		t.Errorf("%d: %+v", total, list)
	}
	if some, total := r.List(1); len(some) != 1 || total != 3 {
		t.Errorf("with a limit: %d of %d", len(some), total)
	}
	if r.End("none") {
		t.Error("a watch that does not exist was ended")
	}
	if !r.End(list[1].ID) || !errors.Is(context.Cause(ctx), ErrClosed) {
		t.Errorf("not ended: %v", context.Cause(ctx))
	}
	for _, e := range []*Entry{quiet, busy, stalled} {
		e.Close()
	}
	if _, left := r.List(1); left != 0 {
		t.Error("watches are left")
	}
}
