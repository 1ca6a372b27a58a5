package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestKilledUnderLoad ends the whole process, as kill -9 does, again and again
// while clients write: every write that was acknowledged is there afterwards, and
// a watch that resumes where it was cut sees each of them, in order, once.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const rounds, writers = 10, 8
	random := seeded(t)
	a := startAllInOne(t, vocabulary.Platform())
	namespace := newNamespace(t, a.Client(t))
	l := newLedger()
	f := follow(t, a, namespace, l)
	for round := range rounds {
		enough := l.expect(1 + random.IntN(300))
		in := a.Client(t).Resource(configMaps()).Namespace(namespace)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for writer := range writers {
			group.Go(func() { write(ctx, in, l, fmt.Sprintf("w%d-r%d", writer, round)) })
		}
		select {
		case <-enough:
		case <-time.After(patience):
			t.Fatalf("round %d: too few writes within %v", round, patience)
		}
		a.process.kill()
		cancel()
		group.Wait()
		a.start(t)
		l.checkStored(t, stored(t, a, namespace))
		if t.Failed() {
			t.FailNow()
		}
	}
	in := a.Client(t).Resource(configMaps()).Namespace(namespace)
	if _, err := in.Create(t.Context(), configMap("end", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the resumed watch is at the end", func() bool { return l.hasSeen("end") })
	f.stop()
	l.checkSeen(t)
}

// seeded returns a source of chance that PORTICO_SEED repeats.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("PORTICO_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("PORTICO_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// write creates objects and increments a counter until a request fails.
func write(ctx context.Context, in dynamic.ResourceInterface, l *ledger, name string) {
	counter, err := in.Create(ctx, configMap(name, "1"), metav1.CreateOptions{})
	for i := 1; err == nil; i++ {
		l.acknowledged(name, i)
		single := fmt.Sprintf("%s-%d", name, i)
		if _, err = in.Create(ctx, configMap(single, "1"), metav1.CreateOptions{}); err != nil {
			return
		}
		l.acknowledged(single, 1)
		next := configMap(name, strconv.Itoa(i+1))
		next.SetResourceVersion(counter.GetResourceVersion())
		counter, err = in.Update(ctx, next, metav1.UpdateOptions{})
	}
}

// stored reads everything in the namespace.
func stored(t *testing.T, a *allInOne, namespace string) map[string]int {
	t.Helper()
	list, err := a.Client(t).Resource(configMaps()).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for _, o := range list.Items {
		values[o.GetName()] = number(&o)
	}
	return values
}

func number(o *unstructured.Unstructured) int {
	n, _ := strconv.Atoi(value(o))
	return n
}

// follower is a watch that resumes where it was cut until it is stopped.
type follower struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func follow(t *testing.T, a *allInOne, namespace string, l *ledger) *follower {
	t.Helper()
	client := a.Client(t)
	list, err := client.Resource(configMaps()).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f := &follower{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		in, version := client.Resource(configMaps()).Namespace(namespace), list.GetResourceVersion()
		retry := time.NewTicker(20 * time.Millisecond)
		defer retry.Stop()
		for ctx.Err() == nil {
			if w, err := in.Watch(ctx, metav1.ListOptions{LabelSelector: ours, ResourceVersion: version, AllowWatchBookmarks: true}); err == nil {
				version = l.drain(ctx, w, version)
			}
			select {
			case <-ctx.Done():
			case <-retry.C:
			}
		}
	}()
	t.Cleanup(f.stop)
	return f
}

func (f *follower) stop() {
	f.cancel()
	<-f.done
}

// ledger compares the acknowledged writes with the stored objects and the events.
type ledger struct {
	mu     sync.Mutex
	acked  map[string]int          // the highest acknowledged value
	seen   map[string]map[int]bool // the values that the watch has shown
	faults []string
	left   int // acknowledgements until enough is closed
	enough chan struct{}
}

func newLedger() *ledger {
	return &ledger{acked: map[string]int{}, seen: map[string]map[int]bool{}}
}

// expect returns a channel that is closed after some more acknowledgements.
func (l *ledger) expect(writes int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.enough = writes, make(chan struct{})
	return l.enough
}

func (l *ledger) acknowledged(name string, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[name] = value
	if l.left--; l.left == 0 {
		close(l.enough)
	}
}

// drain notes the events of one watch and returns the version to resume from.
func (l *ledger) drain(ctx context.Context, w watch.Interface, version string) string {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version
		case e, open := <-w.ResultChan():
			o, ok := e.Object.(*unstructured.Unstructured)
			if !open {
				return version
			}
			if e.Type == watch.Error {
				// The client library reports a broken connection as an ERROR event too;
				// one from the service means that the resourceVersion has expired.
				if err := apierrors.FromObject(e.Object); !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
					l.fault("the watch resumed at %s: %v", version, err)
				}
				return version
			}
			if !ok {
				l.fault("the watch resumed at %s sent a %T", version, e.Object)
				return version
			}
			version = o.GetResourceVersion()
			if e.Type != watch.Bookmark {
				l.note(o.GetName(), number(o))
			}
		}
	}
}

func (l *ledger) note(name string, value int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[name] == nil {
		l.seen[name] = map[int]bool{}
	}
	if value > 1 && !l.seen[name][value-1] || l.seen[name][value] {
		l.faults = append(l.faults, fmt.Sprintf("%s=%d came out of order or twice", name, value))
	}
	l.seen[name][value] = true
}

func (l *ledger) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

func (l *ledger) hasSeen(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen[name] != nil
}

func (l *ledger) checkStored(t *testing.T, stored map[string]int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, value := range l.acked {
		if stored[name] < value {
			t.Errorf("%s=%d was acknowledged; stored is %d", name, value, stored[name])
		}
	}
}

func (l *ledger) checkSeen(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, fault := range l.faults[:min(len(l.faults), 10)] {
		t.Error(fault)
	}
	missed := 0
	for name, value := range l.acked {
		for v := 1; v <= value; v++ {
			if !l.seen[name][v] {
				missed++
			}
		}
	}
	t.Logf("%d objects were written, %d seen", len(l.acked), len(l.seen))
	if missed > 0 {
		t.Errorf("the watch missed %d acknowledged writes", missed)
	}
}
