package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// requests counts the requests of informers that return whole collections: lists, and
// watches that start with the existing objects.
type requests struct{ lists, watchLists atomic.Int64 }

func (r *requests) sum() int64 { return r.lists.Load() + r.watchLists.Load() }

// count makes the clients of a configuration count.
func (r *requests) count(config *rest.Config) *rest.Config {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counted{next, r} })
	return config
}

type counted struct {
	http.RoundTripper
	requests *requests
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	switch query := r.URL.Query(); {
	case query.Get("watch") == "":
		c.requests.lists.Add(1)
	case query.Get("sendInitialEvents") == "true":
		c.requests.watchLists.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// informerClients are the stock clients that informers are made of.
type informerClients struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func newInformerClients(c *cluster.Cluster, r *requests) informerClients {
	config := r.count(c.Config())
	return informerClients{dynamic.NewForConfigOrDie(config), metadata.NewForConfigOrDie(metadata.ConfigFor(config))}
}

// reflected is an informer under test.
type reflected struct {
	view     view
	informer cache.SharedIndexInformer

	mu     sync.Mutex
	last   map[string]int64 // the newest revision of each object
	faults []string
}

// newReflected makes an informer of a view: every third of partial metadata.
func newReflected(t *testing.T, c informerClients, v view, i int) *reflected {
	t.Helper()
	r := &reflected{view: v, last: map[string]int64{}}
	tweak := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = v.label, v.field }
	if i%3 == 0 {
		r.informer = metadatainformer.NewFilteredMetadataInformer(c.metadata, v.resource, v.namespace, 0, cache.Indexers{}, tweak).Informer()
	} else {
		r.informer = dynamicinformer.NewFilteredDynamicInformer(c.dynamic, v.resource, v.namespace, 0, cache.Indexers{}, tweak).Informer()
	}
	if _, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.note(o) },
		UpdateFunc: func(_, o any) { r.note(o) },
	}); err != nil {
		t.Fatal(err)
	}
	return r
}

// note checks that the resourceVersion of an object never decreases. It may be repeated
// after the informer has listed again.
func (r *reflected) note(o any) {
	object, err := meta.Accessor(o)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key, revision := object.GetNamespace()+"/"+object.GetName(), versionOf(object)
	if revision < r.last[key] {
		r.faults = append(r.faults, fmt.Sprintf("%s came with revision %d after %d", key, revision, r.last[key]))
	}
	r.last[key] = revision
}

func versionOf(o metav1.Object) int64 {
	revision, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	return revision
}

// through returns the revision that the informer has reached.
func (r *reflected) through() int64 {
	revision, _ := strconv.ParseInt(r.informer.LastSyncResourceVersion(), 10, 64)
	return revision
}

// objects returns what the informer holds of what has changed after a revision, but for what the
// front doors renew all the time.
func (r *reflected) objects(after int64) map[string]int64 {
	objects := map[string]int64{}
	for _, o := range r.informer.GetStore().List() {
		if object, err := meta.Accessor(o); err == nil && versionOf(object) > after {
			objects[object.GetNamespace()+"/"+object.GetName()] = versionOf(object)
		}
	}
	maps.DeleteFunc(objects, renewed)
	return objects
}

// renewed reports whether an object is the Lease of a front door.
func renewed(name string, _ int64) bool { return strings.HasPrefix(name, "kube-system/apiserver-") }

// check compares the informer's cache with the stored objects that have changed after a
// revision.
func (r *reflected) check(t *testing.T, after int64, want map[string]int64) {
	t.Helper()
	maps.DeleteFunc(want, renewed)
	t.Cleanup(func() {
		if got := r.objects(after); t.Failed() && !maps.Equal(got, want) {
			for name, revision := range got {
				if want[name] != revision {
					t.Logf("an informer of %s holds %s at %d, which is at %d", r.view, name, revision, want[name])
				}
			}
		}
	})
	eventually(t, "an informer of "+r.view.String()+" holds what is there", func() bool { return maps.Equal(r.objects(after), want) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) > 0 {
		t.Errorf("an informer of %s: %s", r.view, strings.Join(r.faults, "; "))
	}
}
