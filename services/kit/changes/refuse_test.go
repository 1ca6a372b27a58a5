package changes

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

// far is a revision that etcd will not reach.
const far = 1 << 60

// watched is a source with metrics and a log for the test.
type watched struct {
	Source
	metrics *prometheus.Registry
	log     *bytes.Buffer
}

func (w *world) watched() watched {
	x := watched{Source: w.source(), metrics: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	x.Opener = NewOpener(w, x.metrics, slog.New(slog.NewTextHandler(x.log, nil)))
	return x
}

func (x watched) refused(reason string) float64 {
	return testutil.ToFloat64(x.Opener.refused.WithLabelValues(reason))
}

// flushed returns when NATS has received all published messages.
func (w *world) flushed() {
	w.t.Helper()
	if err := w.bus.FlushWithContext(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func encoded(t *testing.T, c services.Change) []byte {
	t.Helper()
	message, err := AppendChange(nil, c)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func encodedProgress(t *testing.T, p services.Progress) []byte {
	t.Helper()
	message, err := rpc.EncodeProgress(p)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// forgery returns a change that did not happen, whose Previous is after.
func forgery(after, revision int64) services.Change {
	return services.Change{Type: services.Added, Previous: after, Object: services.Object{
		Key:      resource.Key{GroupResource: things, Namespace: "ns", Name: "forged"},
		Revision: revision, JSON: []byte(`{"metadata":{"name":"forged"}}`),
	}}
}

// TestForgeriesAreRefused sends messages that an attacker with access to the bus can
// create, and then continues the genuine stream.
func TestForgeriesAreRefused(t *testing.T) {
	w := newWorld(t)
	x := w.watched()
	w.happen(services.Added, "a")
	f := w.follow(x.Source, 0)
	f.until(1)
	genuine := w.seal(Subject(things), encoded(t, w.happen(services.Modified, "a")))
	w.sendRaw(Subject(things), genuine)
	f.until(2)

	otherMaster, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	change, progress := encoded(t, forgery(2, 3)), encodedProgress(t, services.Progress{Through: far, Floor: far})
	send := func(subject string, content []byte) {
		w.sendRaw(subject, content) // in clear
		message, err := seal.NewSealer(otherMaster).Seal(nil, subject, content)
		if err != nil {
			t.Fatal(err)
		}
		w.sendRaw(subject, message)                     // with the attacker's key
		id := w.masters[0].ID()                         // with the hub's key ID
		copy(message[1:], id[:])                        //
		w.sendRaw(subject, message)                     //
		w.sendRaw(subject, genuine[:len(genuine)-1])    // truncated
		w.sendRaw(subject, append(genuine[:60:60], 77)) // shorter than any message
	}
	send(Subject(things), change)
	send(Subject(things), encoded(t, forgery(2, far)))
	send(SubjectProgress, progress)
	w.sendRaw(SubjectProgress, genuine) // a message moved to another subject
	other := w.seal("changes.core.secrets", change)
	w.sendRaw(Subject(things), other) // genuine, but of another subject
	w.flushed()

	replays := w.countReplays()
	w.publish(w.happen(services.Modified, "a"))
	f.until(3)
	f.expect(1, 2, 3)
	if again := w.countReplays(); again > replays {
		t.Errorf("forgeries caused %d replays", again-replays)
	}
	for reason, want := range map[string]float64{reasonMalformed: 6, reasonUnknownKey: 3, reasonForged: 8, reasonUnconfirmed: 0} {
		if got := x.refused(reason); got != want {
			t.Errorf("%v refused as %s, want %v", got, reason, want)
		}
	}
	if lines := strings.Count(x.log.String(), "messages on the bus rejected"); lines != 1 {
		t.Errorf("%d lines in the log:\n%s", lines, x.log)
	}
	if x.Opener.alarm() != 1 {
		t.Error("no alarm")
	}
}

// TestRepeatedMessagesChangeNothing replays genuine messages of the hub.
func TestRepeatedMessagesChangeNothing(t *testing.T) {
	w := newWorld(t)
	x := w.watched()
	w.happen(services.Added, "a")
	f := w.follow(x.Source, 0)
	f.until(1)
	var messages [][]byte
	old := w.seal(SubjectProgress, encodedProgress(t, services.Progress{Through: 1, Heads: map[resource.GroupResource]int64{things: 1}}))
	for range 3 {
		messages = append(messages, w.seal(Subject(things), encoded(t, w.happen(services.Modified, "a"))))
	}
	last := messages[2]
	w.sendRaw(Subject(things), messages[0])
	f.until(2)
	// Out of order and repeatedly: the gap causes a replay, after which all of them are
	// old.
	for _, message := range [][]byte{last, messages[1], messages[0], last, messages[1]} {
		w.sendRaw(Subject(things), message)
		w.sendRaw(SubjectProgress, old)
	}
	f.until(4)
	w.sendRaw(Subject(things), messages[0])
	w.sendRaw(SubjectProgress, old)
	w.publish(w.happen(services.Deleted, "a"))
	f.until(5)
	f.expect(1, 2, 3, 4, 5)
}

// TestRevisionsAreConfirmed sends revisions that do not exist, sealed with the hub's key,
// as a faulty hub would.
func TestRevisionsAreConfirmed(t *testing.T) {
	for name, send := range map[string]func(*world){
		"change":             func(w *world) { w.send(Subject(things), encoded(w.t, forgery(1, far))) },
		"change after a gap": func(w *world) { w.send(Subject(things), encoded(w.t, forgery(far-1, far))) },
		"progress": func(w *world) {
			w.send(SubjectProgress, encodedProgress(w.t, services.Progress{Through: far, Heads: map[resource.GroupResource]int64{things: 1}}))
		},
		"head": func(w *world) {
			w.send(SubjectProgress, encodedProgress(w.t, services.Progress{Through: far, Heads: map[resource.GroupResource]int64{things: far}}))
		},
		"floor": func(w *world) {
			w.send(SubjectProgress, encodedProgress(w.t, services.Progress{Through: far, Floor: far}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.watched()
			x.confirm = 50 * time.Millisecond
			w.happen(services.Added, "a")
			f := w.follow(x.Source, 0)
			f.until(1)
			send(w)
			w.flushed()
			w.publish(w.happen(services.Modified, "a"))
			f.until(2)
			// Next returns for this one only after the unconfirmed target was dropped.
			for x.refused(reasonUnconfirmed) == 0 {
				w.publish(w.happen(services.Modified, "a"))
				f.until(f.w.now())
			}
			w.publish(w.happen(services.Modified, "a"))
			f.until(f.w.now())
			for i, revision := range f.seen {
				if revision != int64(i+1) {
					t.Fatalf("saw %v", f.seen)
				}
			}
		})
	}
}

// now returns the newest revision.
func (w *world) now() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.through
}

// TestKeysAreReplaced rotates the key: messages in flight are opened with the old key, and
// messages with it after its lifetime are refused.
func TestKeysAreReplaced(t *testing.T) {
	w := newWorld(t)
	w.overlap = 200 * time.Millisecond
	x := w.watched()
	w.happen(services.Added, "a")
	f := w.follow(x.Source, 0)
	f.until(1)
	w.publish(w.happen(services.Modified, "a"))
	f.until(2)
	old := w.seal(Subject(things), encoded(t, w.happen(services.Modified, "a")))
	forged := w.seal(Subject(things), encoded(t, forgery(4, 5)))
	replays := w.countReplays()
	w.rotate()
	w.sendRaw(Subject(things), old)
	w.publish(w.happen(services.Modified, "a"))
	f.until(4)
	if again := w.countReplays(); again != replays {
		t.Errorf("%d replays for a new key", again-replays)
	}
	for start := time.Now(); time.Since(start) < 2*w.overlap || x.refused(reasonUnknownKey) == 0; {
		w.sendRaw(SubjectProgress, w.seal(SubjectProgress, nil))
		w.flushed()
		if time.Since(start) > 2*w.overlap {
			w.sendRaw(Subject(things), forged)
		}
	}
	w.publish(w.happen(services.Modified, "a"))
	f.until(5)
	f.expect(1, 2, 3, 4, 5)
	if w.keyRequests > 3 {
		t.Errorf("the hub was asked for keys %d times", w.keyRequests)
	}
}

// TestKeysThatCannotBeHad: followers wait while the hub is unavailable, and miss nothing.
func TestKeysThatCannotBeHad(t *testing.T) {
	w := newWorld(t)
	x := w.watched()
	w.happen(services.Added, "a")
	f := w.follow(x.Source, 0)
	f.until(1)
	w.rotate()
	w.fail(services.Unavailable("away"))
	w.publish(w.happen(services.Modified, "a"))
	go func() {
		for range 3 {
			<-w.replayed
		}
		w.fail(nil)
	}()
	f.until(2)
	w.publish(w.happen(services.Modified, "a"))
	f.until(3)
	f.expect(1, 2, 3)
}

// TestFloodsAreDropped sends more forged messages than any buffer holds.
func TestFloodsAreDropped(t *testing.T) {
	w := newWorld(t)
	x := w.watched()
	x.Buffer = 1 << 20
	w.happen(services.Added, "a")
	f := w.follow(x.Source, 0)
	f.until(1)
	otherMaster, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		t.Fatal(err)
	}
	message, err := seal.NewSealer(otherMaster).Seal(nil, Subject(things), make([]byte, 10_000))
	if err != nil {
		t.Fatal(err)
	}
	const flood = 3_000 // 30 MB
	for i := range flood {
		message[1] = byte(i) // many unknown keys
		w.sendRaw(Subject(things), message)
		if i%500 == 0 {
			w.flushed()
		}
	}
	w.flushed()
	f.inbox.mu.Lock()
	if f.inbox.bytes > 0 || f.inbox.lost {
		t.Errorf("%d bytes of forgeries wait, lost %v", f.inbox.bytes, f.inbox.lost)
	}
	f.inbox.mu.Unlock()
	w.publish(w.happen(services.Modified, "a"))
	w.publishProgress(services.Progress{Through: 2, Heads: map[resource.GroupResource]int64{things: 2}})
	w.publishProgress(services.Progress{Through: w.pass(1), Heads: map[resource.GroupResource]int64{things: 2}})
	f.until(2)
	f.expect(1, 2)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keyRequests > 30 {
		t.Errorf("%d requests for keys", w.keyRequests)
	}
	if lines := strings.Count(x.log.String(), "\n"); lines > 10 {
		t.Errorf("%d lines in the log", lines)
	}
}
