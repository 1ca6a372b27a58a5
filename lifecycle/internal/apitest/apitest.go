// Package apitest is a small in-process API over HTTP for tests: any types, with
// discovery, lists, watches, conditional writes and two-phase deletion. It behaves like
// the real API, but has no rules for single types except namespaces. The end-to-end tests
// cover the same controllers against the real API.
package apitest

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
)

// Type is a type that the API serves.
type Type struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	// Stale makes discovery report the type as stale.
	Stale bool
}

// API is a running API.
type API struct {
	// Refuse, if set, may respond to a request with an error code.
	Refuse func(*http.Request) int

	mu       sync.Mutex
	types    map[schema.GroupVersionResource]Type
	objects  map[key]*unstructured.Unstructured
	revision int64
	history  []change
	news     chan struct{} // closed with the next change
	server   *httptest.Server
}

type key struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// change is one event of the history.
type change struct {
	key
	event    string
	revision int64
	object   *unstructured.Unstructured
}

// Start starts an API that ends with the test.
func Start(t *testing.T, types ...Type) *API {
	a := &API{types: map[schema.GroupVersionResource]Type{}, objects: map[key]*unstructured.Unstructured{}, news: make(chan struct{})}
	a.Serve(types...)
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections()
		a.server.Close()
	})
	return a
}

// Config returns a client configuration.
func (a *API) Config() *rest.Config { return &rest.Config{Host: a.server.URL, QPS: -1} }

// Serve adds or replaces types.
func (a *API) Serve(types ...Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range types {
		a.types[t.GroupVersionResource] = t
	}
}

// Withdraw stops serving a type.
func (a *API) Withdraw(resource schema.GroupVersionResource) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.types, resource)
}

// put stores an object and notifies the watches. The caller holds the lock.
func (a *API) put(k key, o *unstructured.Unstructured) {
	event := "MODIFIED"
	if a.objects[k] == nil {
		event = "ADDED"
		o.SetUID(uuid.NewUUID())
		o.SetCreationTimestamp(metav1.Now())
	}
	a.objects[k] = o
	a.record(k, event, o)
}

func (a *API) remove(k key, o *unstructured.Unstructured) {
	delete(a.objects, k)
	a.record(k, "DELETED", o)
}

func (a *API) record(k key, event string, o *unstructured.Unstructured) {
	a.revision++
	o.SetResourceVersion(strconv.FormatInt(a.revision, 10))
	a.history = append(a.history, change{k, event, a.revision, o})
	close(a.news)
	a.news = make(chan struct{})
}

// markDeleted requests the deletion of an object, which completes if it has no
// finalizers.
func (a *API) markDeleted(k key, policy *metav1.DeletionPropagation) {
	o := a.objects[k].DeepCopy()
	if o.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now())
		o.SetDeletionTimestamp(&now)
	}
	finalizers := o.GetFinalizers()
	if policy != nil && *policy == metav1.DeletePropagationForeground && !slices.Contains(finalizers, metav1.FinalizerDeleteDependents) {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	if policy != nil && *policy == metav1.DeletePropagationOrphan && !slices.Contains(finalizers, metav1.FinalizerOrphanDependents) {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	o.SetFinalizers(finalizers)
	if a.objects[k].GetDeletionTimestamp() == nil || len(finalizers) != len(a.objects[k].GetFinalizers()) {
		a.storeOrRemove(k, o)
	}
}

// storeOrRemove stores an object, or removes it if its deletion is complete.
func (a *API) storeOrRemove(k key, o *unstructured.Unstructured) {
	held, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "finalizers")
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && len(held) == 0 {
		a.remove(k, o)
		return
	}
	a.put(k, o)
}

// discover describes the types of the core group, or of the others.
func (a *API) discover(core bool) apidiscovery.APIGroupDiscoveryList {
	a.mu.Lock()
	defer a.mu.Unlock()
	groups := map[schema.GroupVersion][]apidiscovery.APIResourceDiscovery{}
	stale := map[schema.GroupVersion]bool{}
	for _, t := range a.types {
		if core != (t.Group == "") {
			continue
		}
		scope := apidiscovery.ScopeCluster
		if t.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		gv := t.GroupVersion()
		stale[gv] = stale[gv] || t.Stale
		groups[gv] = append(groups[gv], apidiscovery.APIResourceDiscovery{Resource: t.Resource, Scope: scope,
			ResponseKind: &metav1.GroupVersionKind{Group: t.Group, Version: t.Version, Kind: t.Kind},
			Verbs:        []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}})
	}
	var list apidiscovery.APIGroupDiscoveryList
	for gv, resources := range groups {
		freshness := apidiscovery.DiscoveryFreshnessCurrent
		if stale[gv] {
			freshness = apidiscovery.DiscoveryFreshnessStale
		}
		list.Items = append(list.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: gv.Group},
			Versions: []apidiscovery.APIVersionDiscovery{{Version: gv.Version, Resources: resources, Freshness: freshness}}})
	}
	return list
}

// parse parses a path; false if nothing is served there.
func (a *API) parse(path string) (k key, subresource string, t Type, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		k.resource.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		k.resource.Group, k.resource.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return k, "", t, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 && parts[2] != "finalize" && parts[2] != "status" {
		k.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	k.resource.Resource, k.name, subresource = parts[0], parts[1], parts[2]
	a.mu.Lock()
	defer a.mu.Unlock()
	t, ok = a.types[k.resource]
	return k, subresource, t, ok
}
