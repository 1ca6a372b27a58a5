package usage_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/admission/internal/usage"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/quota"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

var quotas = resource.GroupResource{Resource: "resourcequotas"}

// known are the quotas in the mirror.
type known []quota.Quota

func (k known) List(string) []quota.Quota { return slices.Clone(k) }

func (k known) Unreadable(string) error { return nil }

func (k known) Get(string, string) (quota.Quota, bool) { return quota.Quota{}, false }

// cluster stores quotas and returns the plugins of two replicas that charge them.
func cluster(t *testing.T, manifests ...string) (*fake.Cluster, [2]*usage.Plugin) {
	t.Helper()
	c := fake.New(t)
	for _, manifest := range manifests {
		c.Put(t, quotas, manifest)
	}
	counter, all := quota.NewCounter(vocabulary.Platform()), mirrored(t, c)
	return c, [2]*usage.Plugin{usage.New(all, c.Store(), usage.Settings{Counter: counter, Release: release.V136}), usage.New(all, c.Store(), usage.Settings{Counter: counter})}
}

// mirrored returns all quotas of a cluster.
func mirrored(t *testing.T, c *fake.Cluster) (all known) {
	t.Helper()
	page, err := c.List(t.Context(), services.ListRequest{GroupResource: quotas})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Objects {
		q, err := usage.Parse(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, q)
	}
	return all
}

func used(t *testing.T, c *fake.Cluster, name string) string {
	t.Helper()
	stored, err := c.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: quotas, Namespace: "here", Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := usage.Parse(stored)
	if err != nil {
		t.Fatal(err)
	}
	return q.Status.Used.String()
}

func request(plural, object string) services.AdmissionRequest {
	return services.AdmissionRequest{Operation: services.OperationCreate, Version: "v1", Resource: plural, Namespace: "here", Name: "x", Object: []byte(object)}
}

func manifest(name, hard, status string) string {
	return fmt.Sprintf(`{metadata: {name: %s, namespace: here, uid: u, labels: {a: b}}, spec: {hard: {%s}}, status: {%s}}`, name, hard, status)
}

// TestConcurrentChargesDoNotExceedQuota sends far more concurrent requests to two replicas
// than the quota allows.
func TestConcurrentChargesDoNotExceedQuota(t *testing.T) {
	c, replicas := cluster(t, manifest("q", `count/secrets: 20`, `hard: {count/secrets: 20}, used: {count/secrets: 3}`))
	var admitted atomic.Int32
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			err := replicas[i%2].Validate(t.Context(), review.New(request("secrets", `{}`)))
			switch {
			case err == nil:
				admitted.Add(1)
			case !services.IsReason(err, services.ReasonForbidden):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := used(t, c, "q"); admitted.Load() != 17 || got != "count/secrets=20" {
		t.Errorf("%d were admitted, in use: %s", admitted.Load(), got)
	}
}

// TestMovesAreCharged: an object that an update moves into the scope of a quota is charged in
// full; a pod only by releases that do so.
func TestMovesAreCharged(t *testing.T) {
	pod, hurried := `{"spec":{"containers":[{}]}}`, `{"spec":{"activeDeadlineSeconds":5,"containers":[{}]}}`
	claim := func(class, size string) string {
		return `{"spec":{"volumeAttributesClassName":"` + class + `","resources":{"requests":{"storage":"` + size + `"}}}}`
	}
	c, replicas := cluster(t, `{metadata: {name: q, namespace: here, uid: u}, spec: {hard: {pods: 1}, scopes: [Terminating]}, status: {hard: {pods: 1}, used: {pods: 0}}}`,
		`{metadata: {name: gold, namespace: here, uid: u}, spec: {hard: {requests.storage: 3Gi}, scopeSelector: {matchExpressions: [{scopeName: VolumeAttributesClass, operator: In, values: [gold]}]}}, `+
			`status: {hard: {requests.storage: 3Gi}, used: {requests.storage: 1Gi}}}`)
	for _, x := range []struct {
		plural, before, after string
		replica               int
		refused, name, used   string
	}{
		{"pods", pod, hurried, 1, "", "q", "pods=0"},
		{"pods", pod, pod, 0, "", "q", "pods=0"},
		{"pods", pod, hurried, 0, "", "q", "pods=1"},
		{"pods", hurried, hurried, 0, "", "q", "pods=1"},
		{"pods", hurried, pod, 0, "", "q", "pods=1"}, // the worker counts again
		{"pods", pod, hurried, 0, "exceeded quota: q", "q", "pods=1"},
		{"persistentvolumeclaims", claim("lead", "3Gi"), claim("gold", "3Gi"), 0, "exceeded quota: gold", "gold", "requests.storage=1Gi"},
		{"persistentvolumeclaims", claim("lead", "1Gi"), claim("gold", "1Gi"), 0, "", "gold", "requests.storage=2Gi"},
		{"persistentvolumeclaims", claim("gold", "1Gi"), claim("gold", "2Gi"), 0, "", "gold", "requests.storage=3Gi"},
		{"persistentvolumeclaims", claim("gold", "1Gi"), claim("lead", "9Gi"), 0, "", "gold", "requests.storage=3Gi"},
	} {
		r := request(x.plural, x.after)
		r.Operation, r.OldObject = services.OperationUpdate, []byte(x.before)
		err := replicas[x.replica].Validate(t.Context(), review.New(r))
		if x.refused == "" && err != nil || x.refused != "" && (err == nil || !strings.Contains(err.Error(), x.refused)) {
			t.Errorf("%s to %s: %v", x.before, x.after, err)
		}
		if got := used(t, c, x.name); got != x.used {
			t.Errorf("%s to %s: in use: %s, want %s", x.before, x.after, got, x.used)
		}
	}
}

// TestResizesAreCharged: a resize of a pod is charged by what it adds to what the pod has, also
// after its node has refused an earlier one; not by releases without resizes.
func TestResizesAreCharged(t *testing.T) {
	c, replicas := cluster(t, manifest("q", `requests.cpu: 4`, `hard: {requests.cpu: 4}, used: {requests.cpu: 1}`))
	pod := func(cpu, status string) string {
		return `{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"` + cpu + `"}}}]},"status":{` + status + `}}`
	}
	has := func(cpu string) string {
		return `"containerStatuses":[{"name":"a","resources":{"requests":{"cpu":"` + cpu + `"}}}]`
	}
	refused := has("1") + `,"conditions":[{"type":"PodResizePending","reason":"Infeasible"}]`
	for _, x := range []struct {
		name, subresource, before, after string
		replica                          int
		refused, used                    string
	}{
		{"too much", "resize", pod("1", ""), pod("50", ""), 0, "exceeded quota: q, requested: requests.cpu=49, used: requests.cpu=1, limited: requests.cpu=4", "1"},
		{"at 1.21", "resize", pod("1", ""), pod("50", ""), 1, "", "1"},
		{"not a resize", "status", pod("1", ""), pod("50", ""), 0, "", "1"},
		{"enough", "resize", pod("1", ""), pod("2", ""), 0, "", "2"},
		{"smaller", "resize", pod("2", ""), pod("1", ""), 0, "", "2"},
		{"within what it has", "resize", pod("1", has("2")), pod("2", has("2")), 0, "", "2"},
		{"beyond what it has", "resize", pod("1", has("2")), pod("3", has("2")), 0, "", "3"},
		{"after a refusal, too much", "resize", pod("9", refused), pod("3", refused), 0, "exceeded quota: q, requested: requests.cpu=2", "3"},
		{"after a refusal, enough", "resize", pod("9", refused), pod("2", refused), 0, "", "4"},
	} {
		r := request("pods", x.after)
		r.Operation, r.Subresource, r.OldObject = services.OperationUpdate, x.subresource, []byte(x.before)
		err := replicas[x.replica].Validate(t.Context(), review.New(r))
		if x.refused == "" && err != nil || x.refused != "" && (err == nil || !strings.Contains(err.Error(), x.refused)) {
			t.Errorf("%s: %v", x.name, err)
		}
		if got := used(t, c, "q"); got != "requests.cpu="+x.used {
			t.Errorf("%s: in use: %s, want %s", x.name, got, x.used)
		}
	}
}

// A quota refuses a pod that does not request what the quota limits, also if the pod adds nothing to
// it, which would use the namespace without being counted.
func TestUnrequested(t *testing.T) {
	_, replicas := cluster(t, manifest("q", `limits.cpu: 2`, `hard: {limits.cpu: 2}, used: {limits.cpu: 0}`))
	for _, dry := range []bool{true, false} {
		r := request("pods", `{"spec":{"containers":[{"resources":{"requests":{"memory":"1"}}}]}}`)
		r.DryRun = dry
		if err := replicas[0].Validate(t.Context(), review.New(r)); err == nil || !strings.Contains(err.Error(), "failed quota: q: must specify limits.cpu") {
			t.Errorf("a pod without a limit, dry run %v: %v", dry, err)
		}
		r = request("pods", `{"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}}`)
		r.DryRun = dry
		if err := replicas[0].Validate(t.Context(), review.New(r)); err != nil {
			t.Errorf("a pod with one, dry run %v: %v", dry, err)
		}
	}
}

func TestCharges(t *testing.T) {
	status := `hard: {requests.cpu: 2, pods: 5}, used: {requests.cpu: 1, pods: 1}`
	c, replicas := cluster(t, manifest("a", `requests.cpu: 2, pods: 5`, status), manifest("b", `pods: 2`, `hard: {pods: 2}, used: {pods: 1}`),
		manifest("new", `configmaps: 0, requests.memory: 0`, ``), manifest("changing", `secrets: 0, services: 0`, `hard: {services: 1}, used: {services: 0}`),
		manifest("odd", `replicationcontrollers: 5`, `hard: {replicationcontrollers: 5}`), manifest("storage", `requests.storage: 3Gi`, `hard: {requests.storage: 3Gi}, used: {requests.storage: 1Gi}`))
	pod := func(cpu string) string {
		return `{"spec":{"containers":[{"resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`
	}
	dry, resize, status2 := request("pods", pod("1")), request("persistentvolumeclaims", `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`), request("pods", pod("9"))
	dry.DryRun, status2.Subresource = true, "status"
	resize.Operation, resize.OldObject = services.OperationUpdate, []byte(`{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`)
	for _, x := range []struct {
		name    string
		request services.AdmissionRequest
		refused string
	}{
		{"too much", request("pods", pod("1500m")), "pods \"x\" is forbidden: exceeded quota: a, requested: requests.cpu=1500m, used: requests.cpu=1, limited: requests.cpu=2"},
		{"without requests", request("pods", `{"spec":{"containers":[{}]}}`), "failed quota: a: must specify requests.cpu"},
		{"a dry run", dry, ""},
		{"enough", request("pods", pod("1")), ""},
		{"one too many", request("pods", pod("0")), "exceeded quota: b"},
		{"a subresource", status2, ""},
		{"a quota that has not been counted", request("configmaps", `{}`), ""},
		{"a limit that has not been counted", request("secrets", `{}`), ""},
		{"a limit that was", request("services", `{}`), ""},
		{"too many for a limit that was", request("services", `{}`), "exceeded quota: changing, requested: services=1, used: services=1, limited: services=1"},
		{"a limit without usage", request("replicationcontrollers", `{}`), "status unknown for quota: odd, resources: replicationcontrollers"},
		{"a resource without a quota", request("resourcequotas", `{}`), ""},
		{"growing", resize, ""},
	} {
		err := replicas[0].Validate(t.Context(), review.New(x.request))
		if x.refused == "" && err != nil || x.refused != "" && (err == nil || !strings.Contains(err.Error(), x.refused)) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	for name, want := range map[string]string{"a": "pods=2,requests.cpu=2", "b": "pods=2", "storage": "requests.storage=3Gi"} {
		if got := used(t, c, name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestRefunds: a charge that is given back leaves the usage as it was before, in all quotas and whatever else
// is charged in between; never below zero, and not in another quota of the same name.
func TestRefunds(t *testing.T) {
	c, replicas := cluster(t, manifest("a", `requests.cpu: 2, pods: 5`, `hard: {requests.cpu: 2, pods: 5}, used: {requests.cpu: 1, pods: 1}`),
		manifest("b", `pods: 3`, `hard: {pods: 3}, used: {pods: 1}`))
	pod := request("pods", `{"spec":{"containers":[{"resources":{"requests":{"cpu":"300m"}}}]}}`)
	charge := func(replica int, r services.AdmissionRequest) []byte {
		t.Helper()
		one := review.New(r)
		if err := replicas[replica].Validate(t.Context(), one); err != nil {
			t.Fatal(err)
		}
		response, err := one.Response()
		if err != nil {
			t.Fatal(err)
		}
		return response.Charge
	}
	want := func(what, a, b string) {
		t.Helper()
		if gotA, gotB := used(t, c, "a"), used(t, c, "b"); gotA != a || gotB != b {
			t.Errorf("%s: in use: %s and %s, want %s and %s", what, gotA, gotB, a, b)
		}
	}
	refund := func(replica int, charge []byte) {
		t.Helper()
		if err := replicas[replica].Refund(t.Context(), charge); err != nil {
			t.Error(err)
		}
	}
	first := charge(0, pod)
	second := charge(1, pod)
	want("both are charged", "pods=3,requests.cpu=1600m", "pods=3")
	refund(1, first) // also by another replica
	want("one is given back", "pods=2,requests.cpu=1300m", "pods=2")
	refund(0, second)
	want("both are", "pods=1,requests.cpu=1", "pods=1")

	dry := pod
	dry.DryRun = true
	if got := charge(0, dry); got != nil {
		t.Errorf("a dry run was charged %s", got)
	}
	if got := charge(0, request("configmaps", `{}`)); got != nil {
		t.Errorf("what no quota counts was charged %s", got)
	}
	want("nothing is charged", "pods=1,requests.cpu=1", "pods=1")

	third := charge(0, pod)
	c.Put(t, quotas, manifest("a", `pods: 5`, `hard: {pods: 5}, used: {pods: 0}`))
	c.Put(t, quotas, strings.Replace(manifest("b", `pods: 3`, `hard: {pods: 3}, used: {pods: 3}`), "uid: u", "uid: v", 1))
	refund(0, third)
	want("counted again, and replaced", "pods=0", "pods=3")
	if err := replicas[0].Refund(t.Context(), []byte("?")); !services.IsReason(err, services.ReasonBadRequest) {
		t.Errorf("no charge: %v", err)
	}
}

// rival is a store in which others use up the quota b once a has been charged.
type rival struct {
	services.Store
	charge func()
}

func (r *rival) Update(ctx context.Context, u services.UpdateRequest) (services.Object, error) {
	o, err := r.Store.Update(ctx, u)
	if u.Key.Name == "a" {
		r.charge()
	}
	return o, err
}

// TestPartialChargesAreGivenBack: what one quota has been charged is given back when the next one refuses,
// because others have used it up in between.
func TestPartialChargesAreGivenBack(t *testing.T) {
	c, _ := cluster(t, manifest("a", `pods: 9`, `hard: {pods: 9}, used: {pods: 0}`), manifest("b", `pods: 1`, `hard: {pods: 1}, used: {pods: 0}`))
	store := &rival{Store: c.Store(), charge: func() { c.Put(t, quotas, manifest("b", `pods: 1`, `hard: {pods: 1}, used: {pods: 1}`)) }}
	plugin := usage.New(mirrored(t, c), store, usage.Settings{Counter: quota.NewCounter(vocabulary.Platform())})
	err := plugin.Validate(t.Context(), review.New(request("pods", `{"spec":{"containers":[{}]}}`)))
	if got := used(t, c, "a"); !services.IsReason(err, services.ReasonForbidden) || got != "pods=0" {
		t.Errorf("%v; in use: %s", err, got)
	}
}
