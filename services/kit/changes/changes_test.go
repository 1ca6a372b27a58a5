package changes

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/seal"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
)

// testTimeout bounds every wait of a test.
const testTimeout = 20 * time.Second

var things = resource.GroupResource{Group: "test.example", Resource: "things"}

// world is a real NATS server, and a hub and store whose content the test writes.
type world struct {
	t      *testing.T
	ctx    context.Context
	server *server.Server
	bus    *nats.Conn

	mu          sync.Mutex
	log         []services.Change
	state       map[string]services.Object
	through     int64
	floor       int64
	epoch       string
	failure     error // of the hub
	replays     int
	replayed    chan struct{} // receives at each replay
	masters     []*seal.Master
	overlap     time.Duration // how long a replaced key is accepted
	keyRequests int
}

func newWorld(t *testing.T) *world {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	w := &world{t: t, ctx: ctx, state: map[string]services.Object{}, replayed: make(chan struct{}, 1000), overlap: time.Minute}
	w.rotate()
	w.startServer(server.RANDOM_PORT)
	t.Cleanup(func() { w.server.Shutdown() })
	bus, err := nats.Connect(w.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(bus.Close)
	w.bus = bus
	return w
}

func (w *world) startServer(port int) {
	w.t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true})
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(testTimeout) {
		w.t.Fatal("NATS does not start")
	}
	w.server = s
}

// happen changes an object at the next revision, without publishing the change.
func (w *world) happen(kind services.ChangeType, name string) services.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := services.Change{Type: kind, Previous: w.floor}
	if len(w.log) > 0 {
		c.Previous = w.log[len(w.log)-1].Object.Revision
	}
	w.through++
	c.Object = services.Object{
		Key: resource.Key{GroupResource: things, Namespace: "ns", Name: name}, Revision: w.through,
		JSON: fmt.Appendf(nil, `{"metadata":{"name":%q}}`, name),
	}
	w.log = append(w.log, c)
	w.state[name] = c.Object
	if kind == services.Deleted {
		delete(w.state, name)
	}
	return c
}

// pass adds revisions that do not change the type.
func (w *world) pass(revisions int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.through += revisions
	return w.through
}

// forget drops the history through a revision.
func (w *world) forget(through int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.floor = through
	for len(w.log) > 0 && w.log[0].Object.Revision <= through {
		w.log = w.log[1:]
	}
}

// restore undoes all changes after a revision, like a restored backup. Later changes get
// revisions that were used before. Up to the revision, no object may have changed twice.
func (w *world) restore(through int64, epoch string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch, w.through = epoch, through
	w.log = w.log[:through]
	w.state = map[string]services.Object{}
	for _, c := range w.log {
		w.state[c.Object.Key.Name] = c.Object
	}
}

// fail sets the error that the hub returns; nil for none.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}

// publish puts changes on the bus as one message.
func (w *world) publish(changes ...services.Change) {
	w.t.Helper()
	var message []byte
	for _, c := range changes {
		var err error
		if message, err = AppendChange(message, c); err != nil {
			w.t.Fatal(err)
		}
	}
	w.send(Subject(things), message)
}

func (w *world) publishProgress(p services.Progress) {
	w.t.Helper()
	message, err := rpc.EncodeProgress(p)
	if err != nil {
		w.t.Fatal(err)
	}
	w.send(SubjectProgress, message)
}

// send seals a message and puts it on the bus.
func (w *world) send(subject string, content []byte) {
	w.t.Helper()
	w.sendRaw(subject, w.seal(subject, content))
}

func (w *world) seal(subject string, content []byte) []byte {
	w.t.Helper()
	message, err := seal.NewSealer(w.masters[len(w.masters)-1]).Seal(nil, subject, content)
	if err != nil {
		w.t.Fatal(err)
	}
	return message
}

func (w *world) sendRaw(subject string, message []byte) {
	w.t.Helper()
	if err := w.bus.Publish(subject, message); err != nil {
		w.t.Fatal(err)
	}
}

// rotate adds a new key, with which the hub seals from now on.
func (w *world) rotate() {
	w.t.Helper()
	master, err := seal.NewMaster(seal.NewSecret())
	if err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.masters = append(w.masters, master)
}

// Keys implements services.WatchHub.
func (w *world) Keys(_ context.Context, r services.KeysRequest) (services.Keys, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keyRequests++
	if w.failure != nil {
		return services.Keys{}, w.failure
	}
	var keys services.Keys
	for i, master := range w.masters {
		id := master.ID()
		key := services.BusKey{ID: id[:], Public: master.Public()}
		if i < len(w.masters)-1 {
			key.Lifetime = w.overlap
		}
		var err error
		if key.Changes, err = master.Secret(Subject(r.GroupResource)); err == nil {
			key.Progress, err = master.Secret(SubjectProgress)
		}
		if err != nil {
			return keys, err
		}
		keys.Keys = append(keys.Keys, key)
	}
	return keys, nil
}

// Replay implements services.WatchHub.
func (w *world) Replay(_ context.Context, r services.ReplayRequest) (services.Replay, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replays++
	select {
	case w.replayed <- struct{}{}:
	default:
	}
	if w.failure != nil {
		return services.Replay{}, w.failure
	}
	if r.After < w.floor {
		return services.Replay{}, services.Expired("too old")
	}
	answer := services.Replay{Through: max(w.through, r.After), Epoch: w.epoch}
	for _, c := range w.log {
		if c.Object.Revision > r.After {
			answer.Changes = append(answer.Changes, c)
		}
	}
	if len(answer.Changes) > 2 { // short pages, to be joined
		answer.Changes = answer.Changes[:2]
		answer.Through, answer.More = answer.Changes[1].Object.Revision, true
	}
	return answer, nil
}

func (w *world) countReplays() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.replays
}

func (w *world) source() Source {
	return Source{Bus: w.bus, Hub: w, Silence: testTimeout, Opener: NewOpener(w, nil, slog.New(slog.DiscardHandler))}
}

// follow starts a stream after a revision.
func (w *world) follow(source Source, after int64) *follower {
	w.t.Helper()
	stream, err := source.Follow(w.ctx, things, after)
	if err != nil {
		w.t.Fatal(err)
	}
	return &follower{w: w, Stream: stream, through: after}
}

// follower checks what a stream returns.
type follower struct {
	*Stream
	w       *world
	seen    []int64
	through int64
}

// until reads until the stream is complete through a revision.
func (f *follower) until(through int64) {
	f.w.t.Helper()
	for f.through < through {
		batch, err := f.Next(f.w.ctx)
		if err != nil {
			f.w.t.Fatalf("at %d, waiting for %d: %v", f.through, through, err)
		}
		if batch.Through <= f.through {
			f.w.t.Fatalf("through %d after %d", batch.Through, f.through)
		}
		for _, c := range batch.Changes {
			f.seen = append(f.seen, c.Object.Revision)
		}
		f.through = batch.Through
	}
}

// expect checks that exactly these revisions were seen, in this order.
func (f *follower) expect(revisions ...int64) {
	f.w.t.Helper()
	if fmt.Sprint(f.seen) != fmt.Sprint(revisions) {
		f.w.t.Errorf("saw %v, want %v", f.seen, revisions)
	}
}

func (w *world) restartServer(meanwhile func()) {
	w.t.Helper()
	port := w.server.Addr().(*net.TCPAddr).Port
	w.server.Shutdown()
	w.server.WaitForShutdown()
	meanwhile()
	w.startServer(port)
}
