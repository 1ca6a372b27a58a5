package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// loadSize is how many clients there are, and how long things take.
type loadSize struct {
	writers, informers int
	// perConnection is how many of either share a connection.
	perConnection int
	pause         time.Duration // between two writes of a writer
	quiet, fault  time.Duration
}

func size() loadSize {
	if *rollingLong {
		return loadSize{writers: 200, informers: 1000, perConnection: 20, pause: 4 * time.Second, quiet: time.Minute, fault: 6 * time.Second}
	}
	return loadSize{writers: 8, informers: 16, perConnection: 4, pause: 500 * time.Millisecond, quiet: 2 * time.Second, fault: 3 * time.Second}
}

// load is clients that write and follow through the balancer, and what they notice.
type load struct {
	size    loadSize
	trial   *trial
	whole   *cluster.Cluster
	spaces  []string
	version int64 // when the informers began
	end     func(t *testing.T)

	followers []*following

	mu      sync.Mutex
	phase   string
	planned bool
	phases  []string
	took    map[string][]time.Duration
	retried map[string]int           // errors that could be retried, and lists of informers
	stalled map[string]time.Duration // how long this process got no time, at most
	acks    []ack
	faults  []fault
}

// ack is a write that a client was told has been done.
type ack struct {
	kind     int // of kinds()
	object   string
	revision int64 // of a deletion: that of the acknowledged write before
	deletion bool
}

// watchedKinds is how many of kinds() the clients write.
const watchedKinds = 2

func newLoad(t *testing.T, whole *cluster.Cluster, x *trial) *load {
	t.Helper()
	l := &load{size: size(), trial: x, whole: whole, took: map[string][]time.Duration{}, retried: map[string]int{}, stalled: map[string]time.Duration{}}
	client := whole.Client(t)
	for range 4 {
		l.spaces = append(l.spaces, newNamespace(t, client))
	}
	return l
}

// begin starts all clients: informers first, on nothing.
func (l *load) begin(t *testing.T) {
	t.Helper()
	l.enter("start", true)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	l.version = l.trial.head(t)
	group.Go(func() { l.observe(ctx) })
	l.follow(ctx, t, &group)
	connections := l.dial(t, l.size.writers)
	for i := range l.size.writers {
		client, err := dynamic.NewForConfigAndClient(l.whole.Config(), connections[i/l.size.perConnection])
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { l.writeOn(ctx, client, i) })
	}
	stop := sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(stop)
	l.end = func(*testing.T) { stop() }
}

// dial returns clients with a connection of their own, for so many to share.
func (l *load) dial(t *testing.T, clients int) (all []*http.Client) {
	t.Helper()
	for range (clients + l.size.perConnection - 1) / l.size.perConnection {
		config := l.whole.Config()
		config.Dial = dialer().DialContext // which makes client-go open a connection of its own
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, client)
	}
	return all
}

// enter begins a phase.
func (l *load) enter(phase string, planned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase, l.planned = phase, planned
	l.phases = append(l.phases, phase)
}

// writer is one client that writes one object again and again.
type writer struct {
	*load
	objects dynamic.ResourceInterface
	kind    int
	space   string
	name    string
	latest  int64 // acknowledged revision
	exists  bool
}

func (l *load) writeOn(ctx context.Context, client dynamic.Interface, i int) {
	w := &writer{load: l, kind: i % watchedKinds, space: l.spaces[i/watchedKinds%len(l.spaces)], name: fmt.Sprintf("w%d", i)}
	w.objects = client.Resource(kinds()[w.kind].resource).Namespace(w.space)
	ticks := time.NewTicker(l.size.pause)
	defer ticks.Stop()
	for n := i; ctx.Err() == nil; n++ {
		w.write(ctx, n)
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// write makes one write, which the client may retry as it is made to. Whether one that
// failed was done is for the next one to find out.
func (w *writer) write(ctx context.Context, n int) {
	began, phase, planned := w.clock()
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	what, done := "patch", ack{kind: w.kind, object: w.space + "/" + w.name, revision: w.latest}
	var made metav1.Object
	var err error
	switch {
	case !w.exists:
		what = "create"
		made, err = w.objects.Create(within, kinds()[w.kind].named(w.name), metav1.CreateOptions{})
	case n%8 == 0:
		what, done.deletion = "delete", true
		err = w.objects.Delete(within, w.name, metav1.DeleteOptions{})
	default:
		patch := fmt.Sprintf(`{"metadata":{"labels":{"tier":"n%d"}}}`, n)
		made, err = w.objects.Patch(within, w.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	took := time.Since(began)
	switch {
	case ctx.Err() != nil:
		return
	case apierrors.IsNotFound(err): // an earlier deletion was done
		w.exists = false
	case apierrors.IsAlreadyExists(err): // an earlier creation was done
		w.exists = true
	case err != nil:
		w.failed(phase, planned, what+" "+w.name, err)
	case done.deletion:
		w.exists = false
		w.note(phase, took, done)
	default:
		w.exists = true
		w.latest, _ = strconv.ParseInt(made.GetResourceVersion(), 10, 64)
		done.revision = w.latest
		w.note(phase, took, done)
	}
}

func (l *load) clock() (now time.Time, phase string, planned bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now(), l.phase, l.planned
}

func (l *load) note(phase string, took time.Duration, a ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took[phase] = append(l.took[phase], took)
	l.acks = append(l.acks, a)
}

// starved is how long this process may get no processor time before what clients notice
// during a planned change says nothing about the change.
const starved = 300 * time.Millisecond

// observe finds out how long this process gets no time, until ctx ends.
func (l *load) observe(ctx context.Context) {
	const every = 20 * time.Millisecond
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for before := time.Now(); ; {
		select {
		case <-ticks.C:
			now, phase, _ := l.clock()
			l.mu.Lock()
			l.stalled[phase] = max(l.stalled[phase], now.Sub(before)-every)
			l.mu.Unlock()
			before = now
		case <-ctx.Done():
			return
		}
	}
}

// fault is something that clients must not notice, in a phase.
type fault struct {
	phase, what string
	// planned means that it would be in order during a fault.
	planned bool
}

// failed records an error. While a fault lasts clients have to expect some, as long as
// they may try again.
func (l *load) failed(phase string, planned bool, what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retried[phase]++
	if retry := mayRetry(err); planned || !retry {
		l.faults = append(l.faults, fault{phase, fmt.Sprintf("%s: %v", what, err), retry})
	}
}

// mayRetry reports whether an error says, or lets the client see, that the request may be
// made again.
func mayRetry(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err)
	}
	if trust := (*tls.CertificateVerificationError)(nil); errors.As(err, &trust) {
		return false
	}
	var lost *url.Error // the connection, before or during the request
	return errors.As(err, &lost) || errors.Is(err, io.ErrUnexpectedEOF) || utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || errors.Is(err, context.DeadlineExceeded)
}

func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acks)
}

// percentile returns the latency of writes in the phases of a name that so many percent
// stay below.
func (l *load) percentile(phase string, percent int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := slices.Sorted(slices.Values(l.took[phase]))
	if len(took) == 0 {
		return 0
	}
	return took[(len(took)-1)*percent/100]
}

// latency describes how writes were in a phase.
func (l *load) latency(phase string) string {
	p50, p99, most := l.percentile(phase, 50), l.percentile(phase, 99), l.percentile(phase, 100)
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d writes, p50 %v, p99 %v, longest %v, %d errors, no processor time for %v", len(l.took[phase]),
		p50.Round(time.Millisecond/10), p99.Round(time.Millisecond/10), most.Round(time.Millisecond/10), l.retried[phase], l.stalled[phase].Round(time.Millisecond))
}

// check makes a last change of each kind in each namespace, waits until every informer
// has seen it, and compares what clients were told with etcd's history.
func (l *load) check(t *testing.T) {
	t.Helper()
	l.enter("check", true)
	acknowledged := l.acknowledged()
	client := l.whole.Client(t)
	var histories []truth
	ends := map[string]int64{}
	for _, k := range kinds()[:watchedKinds] {
		through := int64(0)
		for _, space := range l.spaces {
			through = l.last(t, client, k, space)
			ends[k.resource.Resource+"/"+space] = through
		}
		histories = append(histories, readTruth(t, l.trial.etcd, k.resource, l.version, through))
	}
	l.checkStored(t, histories, acknowledged)
	for _, f := range l.followers {
		end := ends[f.view.resource.Resource+"/"+f.view.namespace]
		within(t, informerPatience, "an informer of "+f.view.String()+" sees the last event", func() bool { return f.has(end) })
		history := histories[slices.IndexFunc(kinds(), func(k sample) bool { return k.resource == f.view.resource })]
		if f.check(t, history.events(f.view), end); t.Failed() {
			t.FailNow() // the others would say the same
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		if stalled := l.stalled[f.phase]; f.planned && stalled > starved {
			t.Logf("%s: %s, while the test got no processor time for %v", f.phase, f.what, stalled)
			continue
		}
		t.Errorf("%s: %s", f.phase, f.what)
	}
	if l.faults = nil; t.Failed() {
		t.Fatalf("retried: %v", l.retried)
	}
}

// last makes the last change of a kind in a namespace, and returns its revision.
func (l *load) last(t *testing.T, client dynamic.Interface, k sample, space string) (revision int64) {
	t.Helper()
	last := k.named("")
	last.SetGenerateName("end-")
	within(t, informerPatience, "a last change", func() bool {
		made, err := client.Resource(k.resource).Namespace(space).Create(t.Context(), last, metav1.CreateOptions{})
		if err != nil && !mayRetry(err) {
			t.Fatal(err)
		}
		if err == nil {
			revision = versionOf(made)
		}
		return err == nil
	})
	return revision
}

// checkStored looks for the first n acknowledged writes in the history.
func (l *load) checkStored(t *testing.T, histories []truth, n int) {
	t.Helper()
	type at struct {
		kind     int
		revision int64
	}
	written, deleted := map[at]string{}, map[string][]int64{}
	for kind, history := range histories {
		for _, e := range history {
			if e.after != nil {
				written[at{kind, e.revision}] = e.object
				continue
			}
			key := fmt.Sprint(kind, e.object)
			deleted[key] = append(deleted[key], e.revision)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := 0
	for _, a := range l.acks[:n] {
		switch {
		case a.deletion && !slices.ContainsFunc(deleted[fmt.Sprint(a.kind, a.object)], func(r int64) bool { return r > a.revision }),
			!a.deletion && written[at{a.kind, a.revision}] != a.object:
			lost++
			t.Errorf("lost: %+v", a)
		}
	}
	t.Logf("%d acknowledged writes, %d lost; %d informers", n, lost, len(l.followers))
}
