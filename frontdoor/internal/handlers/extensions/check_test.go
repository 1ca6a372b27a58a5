package extensions

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// metrics returns the metrics of the extensions, with the values of their labels.
func (b *bench) metrics() (text string) {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.handlers.Metrics())
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			text += fmt.Sprintf("%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	return text
}

// TestConditions: each state of the service and its servers has its reason.
func TestConditions(t *testing.T) {
	healthy := true
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Remote-User") != "system:kube-aggregator" || r.Header.Get("X-Remote-Group") != services.GroupMasters || r.URL.Path != "/apis/ext.example.com/v1":
			w.WriteHeader(http.StatusForbidden)
		case !healthy:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	const services, endpoints = "services", "endpoints"
	object := func(plural, rest string) func() {
		kind := map[string]string{services: "Service", endpoints: "Endpoints"}[plural]
		return func() {
			b.keep(resource.GroupResource{Resource: plural}, "ns", `{"apiVersion":"v1","kind":"`+kind+`","metadata":{"name":"ext","namespace":"ns","uid":"x"},`+rest+`}`)
		}
	}
	remove := func(plural string) func() {
		return func() {
			b.remove(resource.Key{GroupResource: resource.GroupResource{Resource: plural}, Namespace: "ns", Name: "ext"})
		}
	}
	b.register("v1", "ext.example.com", nil)
	port := `"ports":[{"name":"https","port":` + b.port + `}]`
	for _, c := range []struct {
		change         func()
		status, reason string
	}{
		{func() {}, "True", "Passed"},
		{func() { healthy = false }, "False", "FailedDiscoveryCheck"},
		{func() { healthy = true }, "True", "Passed"},
		{object(endpoints, `"subsets":[{"notReadyAddresses":[{"ip":"127.0.0.1"}],`+port+`}]`), "False", "MissingEndpoints"},
		{object(endpoints, `"subsets":[{"addresses":[{"ip":"127.0.0.1"}],"ports":[{"name":"other","port":1}]}]`), "False", "MissingEndpoints"},
		{remove(endpoints), "False", "EndpointsNotFound"},
		{object(services, `"spec":{"type":"ClusterIP","clusterIP":"127.0.0.1","ports":[{"port":1}]}`), "False", "ServicePortError"},
		{object(services, `"spec":{"type":"ExternalName","externalName":"localhost"}`), "True", "Passed"},
		{object(services, `"spec":{"type":"ExternalName","externalName":"169.254.169.254"}`), "False", "FailedDiscoveryCheck"},
		{remove(services), "False", "ServiceNotFound"},
	} {
		c.change()
		if got := b.check("v1", "ext.example.com"); got.status != c.status || got.reason != c.reason {
			t.Errorf("got %v, want %s %s", got, c.status, c.reason)
		}
		down := "0"
		if c.status != "True" {
			down = "1"
		}
		if got := b.metrics(); !strings.Contains(got, `aggregator_unavailable_apiservice{v1.ext.example.com} `+down+"\n") {
			t.Errorf("%s: metrics\n%s", c.reason, got)
		}
	}
	if got := b.metrics(); !strings.Contains(got, "aggregator_unavailable_apiservice_total{v1.ext.example.com,FailedDiscoveryCheck} 2\n") || strings.Contains(got, "ServiceNotFound") {
		t.Errorf("metrics\n%s", got)
	}
	b.remove(resource.Key{GroupResource: b.handlers.resource(), Name: "v1.ext.example.com"})
	b.until("its metrics are gone", func() bool { return b.metrics() == "" })
}

// TestWhoIsTrusted: an extension has to have a certificate for its service of an authority
// of its registration, unless this is not to be verified.
func TestWhoIsTrusted(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	for name, c := range map[string]struct {
		change func(spec map[string]any)
		want   string
	}{
		"trusted":           {nil, "all checks passed"},
		"insecure":          {func(spec map[string]any) { delete(spec, "caBundle"); spec["insecureSkipTLSVerify"] = true }, "all checks passed"},
		"another authority": {func(spec map[string]any) { delete(spec, "caBundle") }, "certificate"},
		"no certificate":    {func(spec map[string]any) { spec["caBundle"] = "aGVsbG8=" }, "no certificate"},
		"another name": {func(spec map[string]any) {
			b.keep(resource.GroupResource{Resource: "services"}, "ns", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"other","namespace":"ns","uid":"o"},
				"spec":{"type":"ExternalName","externalName":"localhost"}}`)
			spec["service"].(map[string]any)["name"] = "other"
		}, "not other.ns.svc"},
	} {
		b.register("v1", "ext.example.com", c.change)
		if got := b.check("v1", "ext.example.com"); !strings.Contains(got.message, c.want) {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}

// TestAFrontDoorWithoutACertificate is not taken for a proxy by the extension.
func TestAFrontDoorWithoutACertificate(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	b.handlers.Identity = nil
	b.register("v1", "ext.example.com", nil)
	if c := b.check("v1", "ext.example.com"); c.reason != "FailedDiscoveryCheck" {
		t.Errorf("got %v", c)
	}
}

// TestConditionsAreWrittenWhenTheyDiffer: a result that only repeats the condition, or
// differs in the message alone, is not written.
func TestConditionsAreWrittenWhenTheyDiffer(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	now := time.Unix(1000, 0)
	b.handlers.now = func() time.Time { return now }
	b.register("v1", "ext.example.com", nil)
	x := func() *extension { return (*b.handlers.table.Load())[[2]string{"ext.example.com", "v1"}] }
	write := func(c condition) (revision int64, since string) {
		t.Helper()
		if err := b.handlers.report(t.Context(), x(), c); err != nil {
			t.Fatal(err)
		}
		stored, err := b.store.Get(t.Context(), services.GetRequest{Key: resource.Key{GroupResource: b.handlers.resource(), Name: "v1.ext.example.com"}})
		if err != nil {
			t.Fatal(err)
		}
		object, err := tree.Decode(stored.JSON)
		if err != nil {
			t.Fatal(err)
		}
		b.until("the condition is known", func() bool { return x().condition == conditionOf(object) })
		if owners := tree.Objects(object, "metadata", "managedFields"); !slices.ContainsFunc(owners, func(e map[string]any) bool {
			return tree.Text(e, "manager") == b.handlers.Vocabulary.Namespace("apiserver") && tree.Child(e, "fieldsV1")["f:status"] != nil
		}) {
			t.Errorf("nobody owns the condition: %v", owners)
		}
		return stored.Revision, tree.Text(tree.Objects(object, "status", "conditions")[0], "lastTransitionTime")
	}
	first, since := write(unavailable("FailedDiscoveryCheck", "port 1"))
	now = now.Add(time.Second)
	if again, _ := write(unavailable("FailedDiscoveryCheck", "port 2")); again != first {
		t.Error("another message is written at once")
	}
	now = now.Add(messageAgain)
	if again, at := write(unavailable("FailedDiscoveryCheck", "port 2")); again == first || at != since {
		t.Errorf("another message is not written later, or as a transition from %s to %s", since, at)
	}
	if _, at := write(passed); at == since {
		t.Error("a transition keeps its time")
	}
}

// TestChecks: one front door checks the extensions: at once when they are registered, again
// when they have failed, and a local APIService without its condition gets that.
func TestChecks(t *testing.T) {
	healthy := make(chan struct{})
	b := newBench(t, func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-healthy:
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = b.handlers.Check(ctx) })
	defer running.Wait()
	defer stop()
	b.register("v1", "ext.example.com", nil)
	x := func(group string) *extension { return (*b.handlers.table.Load())[[2]string{group, "v1"}] }
	b.until("the failure is known", func() bool { return x("ext.example.com").condition.reason == "FailedDiscoveryCheck" })
	close(healthy)
	b.until("it is available", func() bool { return x("ext.example.com").condition == passed })
	b.register("v1", "local.example.com", func(spec map[string]any) { delete(spec, "service"); delete(spec, "caBundle") })
	b.until("the local one has its condition", func() bool { return x("local.example.com") == nil })
}

// TestOneFrontDoorChecks: of two front doors one has the lease; the other gets it when the
// first one leaves or no longer renews it.
func TestOneFrontDoorChecks(t *testing.T) {
	store := fake.New(t).Store()
	one, two := newLease(store), newLease(store)
	start := time.Unix(1000, 0)
	later := start.Add(-time.Hour) // the second one's clock is behind
	renew := func(l *lease, now time.Time, want bool) {
		t.Helper()
		if got, err := l.renew(t.Context(), now); got != want || err != nil {
			t.Fatalf("got %v, %v; want %v", got, err, want)
		}
	}
	for i := range 5 {
		renew(one, start.Add(time.Duration(i)*renewEvery), true)
		renew(two, later.Add(time.Duration(i)*takeAfter), false)
	}
	last := later.Add(4 * takeAfter)
	renew(two, last.Add(takeAfter-1), false)
	renew(two, last.Add(takeAfter), true) // the first one has stopped
	renew(one, start.Add(time.Hour), false)
	if err := two.leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	renew(one, start.Add(time.Hour), true)
	if err := two.leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	renew(one, start.Add(time.Hour+1), true) // not given up by another one
}

// TestSeatsOfExtensions: each extension has seats of its own, which survive a change of its
// registration.
func TestSeatsOfExtensions(t *testing.T) {
	b := newBench(t, func(http.ResponseWriter, *http.Request) {})
	b.register("v1", "a.example.com", nil)
	b.register("v1", "b.example.com", nil)
	seats := func(group string) any { return (*b.handlers.table.Load())[[2]string{group, "v1"}].seats }
	before := seats("a.example.com")
	if before == seats("b.example.com") {
		t.Error("two extensions share seats")
	}
	b.check("v1", "a.example.com")
	if seats("a.example.com") != before {
		t.Error("a change of the condition replaces the seats")
	}
}
