package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// view is the selection of a watcher.
type view struct {
	resource     schema.GroupVersionResource
	namespace    string // empty: all
	label, field string // selectors
}

func (v view) String() string {
	return fmt.Sprintf("%s in %q with %q and %q", v.resource.Resource, v.namespace, v.label, v.field)
}

// path returns where the view is watched.
func (v view) path() string {
	path := "/api/"
	if v.resource.Group != "" {
		path = "/apis/" + v.resource.Group + "/"
	}
	path += v.resource.Version
	if v.namespace != "" {
		path += "/namespaces/" + v.namespace
	}
	return path + "/" + v.resource.Resource
}

// storedObject is the part of a stored object that views depend on.
type storedObject struct {
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct{ NodeName string }
}

// shows reports whether a state of an object is in the view.
func (v view) shows(o *storedObject) bool {
	if o == nil || v.namespace != "" && o.Metadata.Namespace != v.namespace {
		return false
	}
	label, err := labels.Parse(v.label)
	if err != nil {
		return false
	}
	field, err := fields.ParseSelector(v.field)
	if err != nil {
		return false
	}
	return label.Matches(labels.Set(o.Metadata.Labels)) &&
		field.Matches(fields.Set{"metadata.name": o.Metadata.Name, "spec.nodeName": o.Spec.NodeName})
}

// event is one change as a watcher sees it.
type event struct {
	kind, object string
	tier         string // its label: an object that left the view is shown as it was
	revision     int64
}

// transition is one change in etcd's history.
type transition struct {
	object        string
	revision      int64
	before, after *storedObject // nil: there was, or is, none
}

// truth is the history of one resource type.
type truth []transition

// readTruth reads what happened to a resource type after a revision, up to the
// change at another one.
func readTruth(t *testing.T, etcd *clientv3.Client, gvr schema.GroupVersionResource, after, through int64) (history truth) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	prefix := resource.GroupResource{Group: gvr.Group, Resource: gvr.Resource}.Path()
	for response := range etcd.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithRev(after+1)) {
		if err := response.Err(); err != nil {
			t.Fatal(err)
		}
		for _, e := range response.Events {
			history = append(history, newTransition(t, e))
			if e.Kv.ModRevision >= through {
				return history
			}
		}
	}
	t.Fatalf("etcd's history of %s: %v", gvr.Resource, ctx.Err())
	return nil
}

func newTransition(t *testing.T, e *clientv3.Event) transition {
	t.Helper()
	made := transition{revision: e.Kv.ModRevision}
	read := func(value []byte) *storedObject {
		record, err := resource.DecodeRecord(value)
		if err != nil {
			t.Fatal(err)
		}
		o := &storedObject{}
		if err := json.Unmarshal(record.JSON, o); err != nil {
			t.Fatal(err)
		}
		made.object = o.Metadata.Namespace + "/" + o.Metadata.Name
		return o
	}
	if e.PrevKv != nil {
		made.before = read(e.PrevKv.Value)
	}
	if e.Type == clientv3.EventTypePut {
		made.after = read(e.Kv.Value)
	}
	return made
}

// events returns what a watcher of the view has to see, without what is published.
func (h truth) events(v view) (events []event) {
	for _, e := range h {
		if published(e.object) {
			continue
		}
		was, is := v.shows(e.before), v.shows(e.after)
		kind, shown := "MODIFIED", e.after
		switch {
		case !was && !is:
			continue
		case !was:
			kind = "ADDED"
		case !is:
			kind, shown = "DELETED", e.before
		}
		events = append(events, event{kind, e.object, shown.Metadata.Labels["tier"], e.revision})
	}
	return events
}

// objects returns the objects at the end, by name, with their revisions.
func (h truth) objects(v view) map[string]int64 {
	objects := map[string]int64{}
	for _, e := range h {
		delete(objects, e.object)
		if v.shows(e.after) {
			objects[e.object] = e.revision
		}
	}
	return objects
}

// recorder is a watcher that writes down every event and, when its watch ends,
// resumes after the last revision that it has seen.
type recorder struct {
	view    view
	cluster *cluster.Cluster
	seconds int // after which its watches end; 0: never

	mu      sync.Mutex
	version int64 // seen through
	events  []event
	watches int
	faults  []string
}

// resumeEvery is the least time between two watches of a recorder. All together
// must leave the services room to start again.
const resumeEvery = 250 * time.Millisecond

func (r *recorder) run(ctx context.Context) {
	retry := time.NewTicker(resumeEvery)
	defer retry.Stop()
	for ctx.Err() == nil {
		r.watch(ctx)
		select {
		case <-ctx.Done():
		case <-retry.C:
		}
	}
}

// watch records one watch until it ends.
func (r *recorder) watch(ctx context.Context) {
	query := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {strconv.FormatInt(r.version, 10)},
		"labelSelector": {r.view.label}, "fieldSelector": {r.view.field}}
	if r.seconds > 0 {
		query.Set("timeoutSeconds", strconv.Itoa(r.seconds))
	}
	response, err := r.cluster.Send(ctx, cluster.Request{Path: r.view.path() + "?" + query.Encode()})
	if err != nil {
		return
	}
	defer response.Body.Close()
	r.mu.Lock()
	r.watches++
	r.mu.Unlock()
	if response.StatusCode == http.StatusGone {
		r.fault("410 for revision %d", r.version)
	}
	if response.StatusCode != http.StatusOK {
		return
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if !r.note(lines.Bytes()) {
			return
		}
	}
}

// published reports whether a controller has made an object, which it does in each namespace some time after its creation.
func published(name string) bool { return strings.HasSuffix(name, "-root-ca.crt") }

// note records one event; false when the watch is over.
func (r *recorder) note(line []byte) bool {
	var e struct {
		Type   string
		Object struct {
			Metadata struct {
				Name, Namespace, ResourceVersion string
				Labels                           map[string]string
			}
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return false // cut in the middle of an event
	}
	if e.Type == "ERROR" {
		if e.Object.Code == http.StatusGone {
			r.fault("410 after revision %d: %s", r.version, e.Object.Message)
		}
		return false
	}
	revision, err := strconv.ParseInt(e.Object.Metadata.ResourceVersion, 10, 64)
	if err != nil || revision < r.version || revision == r.version && e.Type != "BOOKMARK" {
		r.fault("%s %s at revision %q, after %d", e.Type, e.Object.Metadata.Name, e.Object.Metadata.ResourceVersion, r.version)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.version = max(r.version, revision)
	if e.Type != "BOOKMARK" && !published(e.Object.Metadata.Name) {
		r.events = append(r.events, event{e.Type, e.Object.Metadata.Namespace + "/" + e.Object.Metadata.Name, e.Object.Metadata.Labels["tier"], revision})
	}
	return true
}

func (r *recorder) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// has reports whether at least n events were recorded.
func (r *recorder) has(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events) >= n
}

// check compares what was recorded with what happened up to some revision.
func (r *recorder) check(t *testing.T, want []event) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, fault := range r.faults {
		t.Errorf("%s: %s", r.view, fault)
	}
	for i := range want {
		if i >= len(r.events) || r.events[i] != want[i] {
			t.Errorf("%s, over %d watches: from the %dth of %d events on it saw %v, want %v", r.view, r.watches, i, len(want),
				r.events[min(i, len(r.events)):min(i+3, len(r.events))], want[i:min(i+3, len(want))])
			return
		}
	}
}
