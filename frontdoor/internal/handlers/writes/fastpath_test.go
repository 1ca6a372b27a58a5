package writes

import (
	"context"
	"fmt"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

// behind is a store with a stale cache: reads of AnyRevision return the state at the time
// of freeze.
type behind struct {
	services.Store
	old map[resource.Key]services.Object
}

func (b *behind) freeze(keys ...resource.Key) {
	b.old = map[resource.Key]services.Object{}
	for _, key := range keys {
		if o, err := b.Store.Get(context.Background(), services.GetRequest{Key: key}); err == nil {
			b.old[key] = o
		}
	}
}

func (b *behind) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	if b.old == nil || r.Read.Mode != services.AnyRevision {
		return b.Store.Get(ctx, r)
	}
	if o, ok := b.old[r.Key]; ok {
		return o, nil
	}
	return services.Object{}, services.NotFound(r.Key.Group, r.Key.Resource, r.Key.Name)
}

// TestStaleCacheIsNeverVisible writes through a front door whose cache is stale, after a
// client has written or removed the newest state.
func TestStaleCacheIsNeverVisible(t *testing.T) {
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"%s},"data":{"a":%q}}`
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: "a"}
	store := &behind{Store: fake.New(t).Store()}
	c := newClient(t, store, "10.0.0.0/24")
	value := func(object map[string]any) any { return object["data"].(map[string]any)["a"] }
	version := func(object map[string]any) string {
		return object["metadata"].(map[string]any)["resourceVersion"].(string)
	}
	named := func(version string) string { return fmt.Sprintf(`,"resourceVersion":%q`, version) }

	store.freeze() // the object is not in the cache
	c.must("POST", configMaps, fmt.Sprintf(body, "", "one"))
	two := c.must("PATCH", configMaps+"/a", `{"data":{"a":"two"}}`)
	store.freeze(key)
	three := c.must("PUT", configMaps+"/a", fmt.Sprintf(body, named(version(two)), "three"))
	if got := c.must("PUT", configMaps+"/a", fmt.Sprintf(body, "", "two")); value(got) != "two" || version(got) == version(two) {
		t.Errorf("what was there before is taken for what is there: %v", got)
	}
	c.refused(services.ReasonConflict, "PUT", configMaps+"/a", fmt.Sprintf(body, named(version(three)), "x"))
	c.refused(services.ReasonConflict, "PUT", configMaps+"/a", fmt.Sprintf(body, named(version(two)), "x"))
	c.must("DELETE", configMaps+"/a", "")
	c.refused(services.ReasonNotFound, "PATCH", configMaps+"/a", `{"data":{"a":"four"}}`)
}

// counting counts the calls of admission.
type counting struct {
	handlertest.AdmitAll
	calls, refuse int
}

func (c *counting) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if c.calls++; len(r.Object) == 0 || len(r.OldObject) == 0 && r.Operation == services.OperationUpdate {
		return services.AdmissionResponse{}, services.BadRequest("admission is not shown the objects")
	}
	if c.calls == c.refuse {
		return services.AdmissionResponse{}, services.Forbidden("", r.Resource, r.Name, "no")
	}
	return services.AdmissionResponse{}, nil
}

// TestRepeats repeats a request that changes nothing: the response is the same, and
// admission is called, until something else changes.
func TestRepeats(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	admission := &counting{refuse: 5}
	c.handlers.Admission = admission
	version := func(object map[string]any) any { return object["metadata"].(map[string]any)["resourceVersion"] }
	const same = `{"data":{"a":"b"}}`
	first := c.must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`)
	for range 3 {
		if got := c.must("PATCH", configMaps+"/a", same); version(got) != version(first) {
			t.Error("it has changed")
		}
	}
	c.refused(services.ReasonForbidden, "PATCH", configMaps+"/a", same)
	if admission.calls != 5 || c.handlers.fast.Len() != 1 {
		t.Errorf("admission was called %d times, %d requests are cached", admission.calls, c.handlers.fast.Len())
	}
	c.must("PATCH", configMaps+"/a", `{"data":{"a":"c"}}`)
	if got := c.must("PATCH", configMaps+"/a", same); got["data"].(map[string]any)["a"] != "b" {
		t.Error("a change was taken for a repetition")
	}
}

// unproven is a store behind whose reads of the newest state fail.
type unproven struct {
	behind
	err error
}

func (u *unproven) Get(ctx context.Context, r services.GetRequest) (services.Object, error) {
	if u.err != nil && r.Read.Mode == services.MostRecent {
		return services.Object{}, u.err
	}
	return u.behind.Get(ctx, r)
}

// TestUnprovenCacheIsNeverVisible: what the cache says counts for nothing while the newest state
// cannot be read.
func TestUnprovenCacheIsNeverVisible(t *testing.T) {
	key := resource.Key{GroupResource: resource.GroupResource{Resource: "configmaps"}, Namespace: "default", Name: "a"}
	store := &unproven{behind: behind{Store: fake.New(t).Store()}}
	c := newClient(t, store, "10.0.0.0/24")
	c.must("POST", configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"one"}}`)
	store.freeze(key, resource.Key{GroupResource: key.GroupResource, Namespace: "default", Name: "none"})
	c.must("PATCH", configMaps+"/a", `{"data":{"a":"two"}}`)
	store.err = services.Unavailable("etcd is away")
	for _, request := range [][3]string{
		{"PATCH", "/a", `{"data":{"a":"one"}}`},                              // changes nothing, it seems
		{"PATCH", "/a", `{"metadata":{"resourceVersion":"999"}}`},            // conflicts
		{"PATCH", "/a", `{"metadata":{"labels":{"not valid":"not valid"}}}`}, // is invalid
		{"PATCH", "/none", `{"data":{"a":"one"}}`},                           // is not found
	} {
		c.refused(services.ReasonServiceUnavailable, request[0], configMaps+request[1], request[2])
	}
}
