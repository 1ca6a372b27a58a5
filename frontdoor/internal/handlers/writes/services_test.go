package writes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/serviceips"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

const serviceList = "/api/v1/namespaces/default/services"

func service(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"ports":[{"port":80}]%s}}`, name, spec)
}

// claims returns the number of claims in a store.
func claims(t *testing.T, store services.Reader) int {
	t.Helper()
	n := 0
	for _, kind := range []string{"cluster-ips", "node-ports"} {
		page, err := store.List(t.Context(), services.ListRequest{GroupResource: resource.GroupResource{Group: "portico", Resource: kind}})
		if err != nil {
			t.Fatal(err)
		}
		n += len(page.Objects)
	}
	return n
}

// TestServicesOfManyDoors creates more Services than there are addresses, through two
// front doors concurrently: each address is assigned once and all are used.
func TestServicesOfManyDoors(t *testing.T) {
	store := fake.New(t).Store()
	doors := []*client{newClient(t, store, "10.0.0.0/27"), newClient(t, store, "10.0.0.0/27")}
	const room, requested = 29, 48
	var lock sync.Mutex
	given := map[any]int{}
	var wg sync.WaitGroup
	for i := range requested {
		wg.Go(func() {
			object, err := doors[i%2].do("POST", serviceList, service(fmt.Sprintf("s%d", i), `,"type":"NodePort"`))
			if err != nil {
				return
			}
			spec := object["spec"].(map[string]any)
			lock.Lock()
			defer lock.Unlock()
			given[spec["clusterIP"]]++
			given[spec["ports"].([]any)[0].(map[string]any)["nodePort"]]++
		})
	}
	wg.Wait()
	if len(given) != 2*room || claims(t, store) != 2*room {
		t.Errorf("%d addresses are given and %d claimed, want %d", len(given), claims(t, store), 2*room)
	}
	for address, times := range given {
		if times != 1 {
			t.Errorf("%v was given %d times", address, times)
		}
	}
	for i := range requested {
		wg.Go(func() { _, _ = doors[i%2].do("DELETE", fmt.Sprintf("%s/s%d", serviceList, i), "") })
	}
	wg.Wait()
	if n := claims(t, store); n != 0 {
		t.Errorf("%d claims are left of Services that are gone", n)
	}
}

// TestOneServiceManyWriters changes the type and the ports of one Service concurrently
// through two front doors. Afterwards exactly its addresses are claimed.
func TestOneServiceManyWriters(t *testing.T) {
	store := fake.New(t).Store()
	doors := []*client{newClient(t, store, "10.0.0.0/24"), newClient(t, store, "10.0.0.0/24")}
	doors[0].must("POST", serviceList, service("s", ""))
	changes := []string{
		`{"spec":{"type":"NodePort"}}`,
		`{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30001},{"name":"b","port":81,"nodePort":30002}]}}`,
		`{"spec":{"type":"ClusterIP"}}`,
		`{"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30002}]}}`,
		`{"spec":{"type":"ExternalName","externalName":"a.b"}}`,
		`{"spec":{"type":"LoadBalancer","externalTrafficPolicy":"Local"}}`,
	}
	var wg sync.WaitGroup
	for i := range 8 * len(changes) {
		wg.Go(func() { _, _ = doors[i%2].do("PATCH", serviceList+"/s", changes[i%len(changes)]) })
	}
	wg.Wait()
	repair := &serviceips.Repair{Assigner: doors[0].handlers.Addresses}
	for range 2 { // what writers that met have left
		if err := repair.Whole(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	doors[1].must("PATCH", serviceList+"/s", `{"spec":{"type":"NodePort","ports":[{"name":"x","port":1,"nodePort":30003}]}}`)
	if n := claims(t, store); n != 2 {
		t.Errorf("%d claims, want those of the cluster IP and the node port", n)
	}
}

// robbed is a store in which another client deletes all claims before a Service is stored.
type robbed struct {
	services.Store
	left atomic.Int64 // times
}

func (r *robbed) rob(ctx context.Context, required []services.Requirement) {
	if len(required) == 0 || r.left.Add(-1) < 0 {
		return
	}
	for _, claim := range required {
		_, _ = r.Store.Delete(ctx, services.DeleteRequest{Key: claim.Key, Revision: claim.Revision})
	}
}

func (r *robbed) Create(ctx context.Context, q services.CreateRequest) (services.Object, error) {
	r.rob(ctx, q.Requires)
	return r.Store.Create(ctx, q)
}

func (r *robbed) Update(ctx context.Context, q services.UpdateRequest) (services.Object, error) {
	r.rob(ctx, q.Requires)
	return r.Store.Update(ctx, q)
}

// TestDroppedClaims: the repair takes a slow writer for a crashed one and drops its
// claims. The write claims again, and the Service is stored with what it has claimed.
func TestDroppedClaims(t *testing.T) {
	store := &robbed{Store: fake.New(t).Store()}
	c := newClient(t, store, "10.0.0.0/24")
	for _, step := range []struct{ method, path, body string }{
		{"POST", serviceList, service("s", `,"type":"NodePort"`)},
		{"PATCH", serviceList + "/s", `{"spec":{"ports":[{"name":"x","port":1},{"name":"y","port":2}]}}`},
		{"PUT", serviceList + "/s", service("s", `,"type":"LoadBalancer","externalTrafficPolicy":"Local","clusterIP":"10.0.0.77"`)},
	} {
		store.left.Store(3)
		if step.method == "PUT" { // under the client's own condition
			c.must("DELETE", serviceList+"/s", "")
			made := c.must("POST", serviceList, service("s", `,"clusterIP":"10.0.0.77"`))
			version := made["metadata"].(map[string]any)["resourceVersion"].(string)
			step.body = strings.Replace(step.body, `"metadata":{`, `"metadata":{"resourceVersion":"`+version+`",`, 1)
			store.left.Store(3)
		}
		c.must(step.method, step.path, step.body)
		if left := store.left.Load(); left >= 0 {
			t.Fatalf("%s: the claims were not dropped: %d times are left", step.method, left)
		}
		repair := &serviceips.Repair{Assigner: c.handlers.Addresses}
		before := claims(t, store)
		for range 2 {
			if err := repair.Whole(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if after := claims(t, store); after != before {
			t.Errorf("%s: %d claims, and after a repair %d", step.method, before, after)
		}
	}
}

// TestDryRunOfService claims nothing and shows what would be.
func TestDryRunOfService(t *testing.T) {
	store := fake.New(t).Store()
	c := newClient(t, store, "10.0.0.0/24")
	shown := c.must("POST", serviceList+"?dryRun=All", service("s", `,"type":"NodePort"`))
	if spec := shown["spec"].(map[string]any); spec["clusterIP"] == nil || claims(t, store) != 0 {
		t.Errorf("shown %v, claimed %d", spec, claims(t, store))
	}
}

// TestStatusOfNewService: the status of a new Service is empty, whatever the client sends.
func TestStatusOfNewService(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	body := strings.TrimSuffix(service("s", ""), "}") + `,"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}`
	made := c.must("POST", serviceList, body)
	if want := map[string]any{"loadBalancer": map[string]any{}}; !reflect.DeepEqual(made["status"], want) {
		t.Errorf("status %v, want %v", made["status"], want)
	}
}

// TestRefusedServiceGivesBack: a create that fails because the name is taken frees its
// addresses.
func TestRefusedServiceGivesBack(t *testing.T) {
	store := fake.New(t).Store()
	c := newClient(t, store, "10.0.0.0/24")
	c.must("POST", serviceList, service("s", ""))
	c.refused(services.ReasonAlreadyExists, "POST", serviceList, service("s", ""))
	c.refused(services.ReasonInvalid, "PUT", serviceList+"/s", service("s", `,"type":"NodePort","clusterIP":"10.0.0.300"`))
	if n := claims(t, store); n != 1 {
		t.Errorf("%d claims, want 1", n)
	}
}

var errCrash = errors.New("the process is gone")

// crashing is a store that simulates a crash of the process at one write: before it, or
// after it.
type crashing struct {
	services.Store
	at    int64
	after bool
	count atomic.Int64
}

func (c *crashing) step(write func() (services.Object, error)) (services.Object, error) {
	n := c.count.Add(1)
	if n > c.at || n == c.at && !c.after {
		return services.Object{}, errCrash
	}
	object, err := write()
	if n == c.at {
		return services.Object{}, errCrash
	}
	return object, err
}

func (c *crashing) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Create(ctx, r) })
}

func (c *crashing) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Update(ctx, r) })
}

func (c *crashing) Delete(ctx context.Context, r services.DeleteRequest) (services.Object, error) {
	return c.step(func() (services.Object, error) { return c.Store.Delete(ctx, r) })
}

// TestCrashesLeaveNothing simulates a crash at every write of a Service's creation, update
// and deletion, and then a repair: claims and Services agree, without duplicates.
func TestCrashesLeaveNothing(t *testing.T) {
	life := func(c *client) {
		_, _ = c.do("POST", serviceList, service("s", `,"type":"NodePort"`))
		_, _ = c.do("PATCH", serviceList+"/s", `{"spec":{"ports":[{"port":80,"nodePort":30007}]}}`)
		_, _ = c.do("PATCH", serviceList+"/s", `{"spec":{"type":"ExternalName","externalName":"a.b"}}`)
		_, _ = c.do("PATCH", serviceList+"/s", `{"spec":{"type":"ClusterIP"}}`)
		_, _ = c.do("DELETE", serviceList+"/s", "")
	}
	whole := &crashing{Store: fake.New(t).Store(), at: 1 << 40}
	life(newClient(t, whole, "10.0.0.0/28"))
	if claims(t, whole) != 0 || whole.count.Load() < 10 {
		t.Fatalf("without a crash: %d writes, %d claims left", whole.count.Load(), claims(t, whole))
	}
	for at := range whole.count.Load() {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d, done %t", at+1, after), func(t *testing.T) {
				store := fake.New(t).Store()
				life(newClient(t, &crashing{Store: store, at: at + 1, after: after}, "10.0.0.0/28"))
				c := newClient(t, store, "10.0.0.0/28")
				repair := &serviceips.Repair{Assigner: c.handlers.Addresses}
				for range 2 {
					if err := repair.Young(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				_, _ = c.do("DELETE", serviceList+"/s", "")
				if n := claims(t, store); n != 0 {
					t.Errorf("%d claims are left", n)
				}
			})
		}
	}
}

var _ services.Store = (*crashing)(nil)

// TestAddressesOfTheGone: a Service gives back its addresses in whatever way it disappears.
func TestAddressesOfTheGone(t *testing.T) {
	const finalizers = `"finalizers":["a.b/c"]`
	unfinalized := `{"metadata":{"finalizers":null}}`
	for name, end := range map[string]func(c *client){
		"deletion": func(c *client) {
			c.must("PATCH", serviceList+"/s", unfinalized)
			c.must("DELETE", serviceList+"/s", "")
		},
		"collection": func(c *client) {
			c.must("PATCH", serviceList+"/s", unfinalized)
			c.must("DELETE", serviceList, "")
		},
		"merge patch": func(c *client) {
			c.must("DELETE", serviceList+"/s", "")
			c.must("PATCH", serviceList+"/s", unfinalized)
		},
		"merge patch of the status": func(c *client) {
			c.must("DELETE", serviceList+"/s", "")
			c.must("PATCH", serviceList+"/s/status", unfinalized)
		},
		"update of the status": func(c *client) {
			object := c.must("DELETE", serviceList+"/s", "")
			delete(object["metadata"].(map[string]any), "finalizers")
			raw, err := json.Marshal(object)
			if err != nil {
				c.t.Fatal(err)
			}
			c.must("PUT", serviceList+"/s/status", string(raw))
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := fake.New(t).Store()
			c := newClient(t, store, "10.0.0.0/24")
			c.must("POST", serviceList, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s",`+finalizers+`},
				"spec":{"type":"NodePort","clusterIP":"10.0.0.101","ports":[{"port":80,"nodePort":30011}]}}`)
			end(c)
			if n := claims(t, store); n != 0 {
				t.Errorf("%d claims of a Service that is gone", n)
			}
			c.must("POST", serviceList, service("t", `,"clusterIP":"10.0.0.101"`))
		})
	}
}
