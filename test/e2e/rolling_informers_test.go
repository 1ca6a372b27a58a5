package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

func dialer() *net.Dialer { return &net.Dialer{Timeout: 10 * time.Second} }

// following is an informer that records the revision of every event.
type following struct {
	view     view
	informer cache.SharedIndexInformer
	lists    atomic.Int64

	mu     sync.Mutex
	events []event
	faults []string
}

// follow starts the informers and waits until they are synced.
func (l *load) follow(ctx context.Context, t *testing.T, group *sync.WaitGroup) {
	t.Helper()
	connections := l.dial(t, l.size.informers)
	for i := range l.size.informers {
		f := &following{view: view{resource: kinds()[i%watchedKinds].resource, namespace: l.spaces[i/watchedKinds%len(l.spaces)]}}
		over := &http.Client{Transport: &listing{connections[i/l.size.perConnection].Transport, l, f}}
		client, err := dynamic.NewForConfigAndClient(l.whole.Config(), over)
		if err != nil {
			t.Fatal(err)
		}
		f.informer = dynamicinformer.NewFilteredDynamicInformer(client, f.view.resource, f.view.namespace, 0, cache.Indexers{}, nil).Informer()
		if _, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { f.note("ADDED", o) },
			UpdateFunc: func(_, o any) { f.note("MODIFIED", o) },
			DeleteFunc: func(o any) { f.note("DELETED", o) },
		}); err != nil {
			t.Fatal(err)
		}
		if err := f.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { l.watchFailed(f, err) }); err != nil {
			t.Fatal(err)
		}
		l.followers = append(l.followers, f)
		group.Go(func() { f.informer.RunWithContext(ctx) })
	}
	for _, f := range l.followers {
		within(t, informerPatience, "an informer of "+f.view.String()+" is synced", f.informer.HasSynced)
	}
}

// watchFailed records why an informer could not list or watch. It tries again by itself,
// but not without a list when its revision is gone.
func (l *load) watchFailed(f *following, err error) {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		f.fault("%v", err)
	}
	_, phase, planned := l.clock()
	l.failed(phase, planned, "an informer of "+f.view.String(), err)
}

// listing counts the lists of an informer. After the first one it should only watch.
type listing struct {
	http.RoundTripper
	load *load
	of   *following
}

// RoundTrip implements http.RoundTripper.
func (c *listing) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	if query.Get("watch") == "" || query.Get("sendInitialEvents") == "true" {
		if _, phase, planned := c.load.clock(); c.of.lists.Add(1) > 1 {
			c.load.listed(phase, planned, c.of)
		}
	}
	return c.RoundTripper.RoundTrip(r)
}

// listed records that an informer has listed again.
func (l *load) listed(phase string, planned bool, f *following) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retried[phase+", lists"]++
	if planned {
		l.faults = append(l.faults, fault{phase, fmt.Sprintf("an informer of %s lists again", f.view), true})
	}
}

func (f *following) note(kind string, o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, err := meta.Accessor(o)
	if err != nil {
		f.fault("%T: %v", o, err)
		return
	}
	if published(object.GetName()) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, event{kind, object.GetNamespace() + "/" + object.GetName(), "", versionOf(object)})
}

func (f *following) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, fmt.Sprintf(format, args...))
}

// has reports whether the informer has seen the event of a revision.
func (f *following) has(revision int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.events) - 1; i >= 0; i-- {
		if f.events[i].revision == revision {
			return true
		}
	}
	return false
}

// check compares the events through a revision with those that happened. After another
// list client-go joins some, and shows again what has not changed; none may go back.
func (f *following) check(t *testing.T, want []event, through int64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range f.faults {
		t.Errorf("%s: %s", f.view, fault)
	}
	newest := map[string]int64{}
	for _, e := range f.events {
		if before := newest[e.object]; e.revision < before {
			t.Errorf("%s: %s %s at %d after %d", f.view, e.kind, e.object, e.revision, before)
		}
		newest[e.object] = e.revision
	}
	if f.lists.Load() > 1 {
		return
	}
	for i, w := range want {
		if w.revision > through {
			return
		}
		if w.tier = ""; i >= len(f.events) || f.events[i] != w {
			t.Errorf("%s: from the %dth of %d events on it saw %v, want %v", f.view, i, len(want), f.events[min(i, len(f.events)):min(i+3, len(f.events))], want[i:min(i+3, len(want))])
			return
		}
	}
}
