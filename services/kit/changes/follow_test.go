package changes

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

func TestFollowJoinsReplayAndBus(t *testing.T) {
	w := newWorld(t)
	for range 4 {
		w.happen(services.Added, "a")
	}
	f := w.follow(w.source(), 1)
	f.until(4)
	replays := w.countReplays()
	w.publish(w.happen(services.Modified, "a"))
	w.publish(w.happen(services.Modified, "a"), w.happen(services.Deleted, "a"))
	f.until(7)
	f.expect(2, 3, 4, 5, 6, 7)
	if again := w.countReplays(); again != replays {
		t.Errorf("%d replays for what the bus delivered", again-replays)
	}
}

func TestFollowDropsWhatItHasSeen(t *testing.T) {
	w := newWorld(t)
	one, two := w.happen(services.Added, "a"), w.happen(services.Modified, "a")
	f := w.follow(w.source(), 0)
	f.until(2)
	three := w.happen(services.Modified, "a")
	w.publish(two)
	w.publish(one, two, three)
	w.publish(three)
	w.publish(w.happen(services.Modified, "a"))
	f.until(4)
	f.expect(1, 2, 3, 4)
}

func TestFollowFillsGaps(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	f := w.follow(w.source(), 0)
	f.until(1)

	w.happen(services.Modified, "lost")
	w.publish(w.happen(services.Modified, "a"))
	f.until(3)

	w.happen(services.Modified, "lost and last")
	w.publishProgress(services.Progress{Through: 4, Heads: map[resource.GroupResource]int64{things: 4}})
	f.until(4)

	w.happen(services.Modified, "lost and out of the window")
	w.publishProgress(services.Progress{Through: 6, Floor: 5})
	w.pass(1)
	f.until(6)

	w.happen(services.Modified, "unreadable")
	w.send(Subject(things), []byte("unreadable"))
	f.until(7)
	f.expect(1, 2, 3, 4, 5, 7)
}

func TestFollowAdvancesWithProgress(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	f := w.follow(w.source(), 0)
	f.until(1)
	replays := w.countReplays()
	w.publishProgress(services.Progress{Through: 5, Heads: map[resource.GroupResource]int64{things: 1}})
	w.publishProgress(services.Progress{Through: 3, Heads: map[resource.GroupResource]int64{things: 1}}) // of a slower hub
	w.publishProgress(services.Progress{Through: 9, Floor: 5})
	f.until(9)
	f.expect(1)
	if again := w.countReplays(); again != replays {
		t.Errorf("%d replays although nothing was missing", again-replays)
	}
}

func TestFollowWaitsForTheHub(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	w.fail(services.Unavailable("away"))
	f := w.follow(w.source(), 0)
	go func() {
		for range 3 {
			<-w.replayed
		}
		w.fail(nil)
	}()
	f.until(1)
	f.expect(1)
}

func TestFollowEndsWhenHistoryIsGone(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	w.happen(services.Added, "b")
	w.forget(1)
	f := w.follow(w.source(), 0)
	if _, err := f.Next(w.ctx); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("error %v, want Expired", err)
	}
}

func TestFollowBoundsWhatWaits(t *testing.T) {
	w := newWorld(t)
	source := w.source()
	source.Buffer = 1000
	w.happen(services.Added, "a")
	f := w.follow(source, 0)
	f.until(1)
	for range 100 {
		w.publish(w.happen(services.Modified, "a"))
	}
	// After the flush, all messages are in the inbox or dropped.
	if err := w.bus.FlushWithContext(w.ctx); err != nil {
		t.Fatal(err)
	}
	f.until(101)
	if len(f.seen) != 101 {
		t.Errorf("saw %d changes, want 101", len(f.seen))
	}
	f.inbox.mu.Lock()
	defer f.inbox.mu.Unlock()
	if f.inbox.bytes > source.Buffer {
		t.Errorf("%d bytes wait, more than %d", f.inbox.bytes, source.Buffer)
	}
}

func TestInboxForgetsOnOverflow(t *testing.T) {
	b := newInbox(100)
	for range 3 {
		b.put(&nats.Msg{Subject: "changes", Data: make([]byte, 60)})
	}
	messages, lost := b.take()
	if len(messages) != 1 || !lost {
		t.Errorf("%d messages, lost %v; want the one after the overflow", len(messages), lost)
	}
}

func TestFollowSurvivesTheBus(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	f := w.follow(w.source(), 0)
	f.until(1)
	w.restartServer(func() { w.happen(services.Modified, "a") })
	f.until(2) // without a message
	w.publish(w.happen(services.Modified, "a"))
	f.until(3)
	f.expect(1, 2, 3)
}

func TestFollowAsksAfterSilence(t *testing.T) {
	w := newWorld(t)
	source := w.source()
	source.Silence = 20 * time.Millisecond
	w.happen(services.Added, "a")
	f := w.follow(source, 0)
	f.until(1)
	w.happen(services.Modified, "a")
	f.until(2)
	w.fail(services.Unavailable("away"))
	w.happen(services.Modified, "a")
	for range 2 {
		<-w.replayed
	}
	w.fail(nil)
	f.until(3)
	f.expect(1, 2, 3)
}

func TestRefreshAsksAtOnce(t *testing.T) {
	w := newWorld(t)
	w.happen(services.Added, "a")
	f := w.follow(w.source(), 0)
	f.until(1)
	now := w.pass(10)
	f.Refresh()
	f.until(now)
	f.expect(1)
}

func TestFollowEnds(t *testing.T) {
	w := newWorld(t)
	f := w.follow(w.source(), 0)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := f.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	if n := w.bus.NumSubscriptions(); n != 2 {
		t.Fatalf("%d subscriptions, want 2", n)
	}
	f.Close()
	<-f.ended
	if n := w.bus.NumSubscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
	w.bus.Close()
	if _, err := w.source().Follow(w.ctx, things, 0); !services.IsReason(err, services.ReasonServiceUnavailable) {
		t.Errorf("error %v without a bus, want Unavailable", err)
	}
}

// TestFollowEndsWithTheHistory: messages and replays of another epoch do not continue a
// stream.
func TestFollowEndsWithTheHistory(t *testing.T) {
	w := newWorld(t)
	w.epoch = "one"
	for _, name := range []string{"a", "b", "c"} {
		w.happen(services.Added, name)
	}
	f := w.follow(w.source(), 0)
	f.until(3)
	w.restore(1, "two")
	w.publish(w.happen(services.Added, "d"), w.happen(services.Added, "e")) // revisions that were used before
	w.publishProgress(services.Progress{Through: 3, Heads: map[resource.GroupResource]int64{things: 3}, Epoch: "two"})
	if batch, err := f.Next(w.ctx); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("got %+v, %v; want Expired", batch, err)
	}
}
