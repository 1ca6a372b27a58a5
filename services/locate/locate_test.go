package locate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// objects is a store of Services and their endpoints.
type objects map[string]string

func (o objects) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	if text, ok := o[r.Key.Resource]; ok && r.Key.Namespace == "here" && r.Key.Name == "s" {
		return services.Object{Key: r.Key, JSON: []byte(text)}, nil
	}
	return services.Object{}, services.NotFound("", r.Key.Resource, r.Key.Name)
}

func (o objects) List(_ context.Context, r services.ListRequest) (page services.Page, err error) {
	if r.Namespace != "here" || r.LabelSelector != "kubernetes.io/service-name=s" || r.GroupResource.String() != "endpointslices.discovery.k8s.io" {
		return page, fmt.Errorf("unexpected list %+v", r)
	}
	for _, text := range strings.Fields(o["slices"]) {
		page.Objects = append(page.Objects, services.Object{Key: resource.Key{Namespace: "here", Name: "s-1"}, JSON: []byte(text)})
	}
	return page, nil
}

func (o objects) Revision(context.Context, resource.GroupResource) (int64, error) { return 1, nil }

const (
	ports    = `"ports":[{"name":"https","port":443},{"name":"other","port":444}]`
	slice1   = `{"addressType":"IPv4","ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["10.0.0.2"],"conditions":{"ready":true}},{"addresses":["10.0.0.3"],"conditions":{"ready":false}},{"addresses":["10.0.0.1"]}]}`
	slice2   = `{"addressType":"IPv6","ports":[{"name":"https","port":9443},{"name":"other","port":1}],"endpoints":[{"addresses":["fd00::1","fd00::2"]}]}`
	sliceOff = `{"addressType":"IPv4","ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["10.0.0.3"],"conditions":{"ready":false}}]}`
	sliceDNS = `{"addressType":"FQDN","ports":[{"name":"https","port":8443}],"endpoints":[{"addresses":["example.com"]}]}`
	oldStyle = `{"subsets":[{"addresses":[{"ip":"10.1.0.1"},{"ip":"10.1.0.1"}],"notReadyAddresses":[{"ip":"10.1.0.9"}],"ports":[{"name":"https","port":8443}]}]}`
)

func service(kind, more string) string {
	return fmt.Sprintf(`{"spec":{"type":%q,%s%s}}`, kind, ports, more)
}

// TestAddresses: what a reference means, with and without routing to endpoints, and for
// callers that keep a connection to each replica.
func TestAddresses(t *testing.T) {
	number, name := intstr.FromInt32(443), intstr.FromString("https")
	cluster := service("ClusterIP", `,"clusterIP":"10.9.9.9"`)
	headless := service("ClusterIP", `,"clusterIP":"None"`)
	outside := service("ExternalName", `,"externalName":"example.com"`)
	slices := slice1 + " " + slice2
	three := "10.0.0.1:8443 10.0.0.2:8443 [fd00::1]:9443"
	for _, x := range []struct {
		what                     string
		objects                  objects
		port                     intstr.IntOrString
		cluster, endpoints, each string // addresses, or what the error says
	}{
		{"slices", objects{"services": cluster, "slices": slices, "endpoints": oldStyle}, number, "10.9.9.9:443", three, three},
		{"a named port", objects{"services": cluster, "slices": slices}, name, "10.9.9.9:443", three, three},
		{"another port", objects{"services": cluster, "slices": slices}, intstr.FromInt32(444), "10.9.9.9:444", "[fd00::1]:1", "[fd00::1]:1"},
		{"Endpoints", objects{"services": cluster, "endpoints": oldStyle}, number, "10.9.9.9:443", "10.1.0.1:8443", "10.1.0.1:8443"},
		{"nobody keeps endpoints", objects{"services": cluster}, name, "10.9.9.9:443", "error: no endpoints available for service", "10.9.9.9:443"},
		{"none is ready", objects{"services": cluster, "slices": sliceOff}, number, "10.9.9.9:443", "error: no endpoints available for service", "error: no endpoints available for service"},
		{"names", objects{"services": cluster, "slices": sliceDNS, "endpoints": oldStyle}, number, "10.9.9.9:443", "error: no endpoints available for service", "error: no endpoints available for service"},
		{"headless", objects{"services": headless, "slices": slices}, number, `error: cannot route to service with ClusterIP "None"`, three, three},
		{"headless without endpoints", objects{"services": headless}, number, `error: cannot route to service with ClusterIP "None"`, "error: no endpoints available for service", "error: no endpoints available for service"},
		{"no such port", objects{"services": cluster, "slices": slices}, intstr.FromInt32(1), "error: no service port 1 found", "error: no service port 1 found", "error: no service port 1 found"},
		{"no port of that name", objects{"services": cluster, "slices": slices}, intstr.FromString("x"), "error: no service port x found", "error: no service port x found", "error: no service port x found"},
		{"outside", objects{"services": outside}, intstr.FromInt32(8443), "example.com:8443", `error: unsupported service type "ExternalName"`, "example.com:8443"},
		{"outside, a named port", objects{"services": outside}, name, "example.com:443", `error: unsupported service type "ExternalName"`, "example.com:443"},
		{"outside, no port of that name", objects{"services": outside}, intstr.FromString("x"), `error: no service port x found`, `error: unsupported service type "ExternalName"`, `error: no service port x found`},
		{"outside without a name", objects{"services": service("ExternalName", "")}, number, "error: has no external name", `error: unsupported service type "ExternalName"`, "error: has no external name"},
		{"no Service", objects{}, number, "error: not found", "error: not found", "error: not found"},
	} {
		r := Reference{Namespace: "here", Name: "s", Port: x.port}
		l := Locator{Store: x.objects, Vocabulary: vocabulary.K8s()}
		check(t, x.what+", cluster IP", x.cluster, func() ([]string, error) { return l.Addresses(t.Context(), r) })
		check(t, x.what+", replicas", x.each, func() ([]string, error) { return l.Replicas(t.Context(), r) })
		l.Endpoints = true
		check(t, x.what+", endpoints", x.endpoints, func() ([]string, error) { return l.Addresses(t.Context(), r) })
	}
}

func check(t *testing.T, what, want string, find func() ([]string, error)) {
	t.Helper()
	got, err := find()
	if message, wrong := strings.CutPrefix(want, "error: "); wrong {
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v, %v, want %s", what, got, err, want)
		}
		return
	}
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%s: %v, %v, want %s", what, got, err, want)
	}
}

// TestCache: what was found is used for a second, and an error is not kept.
func TestCache(t *testing.T) {
	store := objects{}
	c := NewCache(Locator{Store: store, Vocabulary: vocabulary.K8s()})
	now := time.Now()
	c.now = func() time.Time { return now }
	r := Reference{Namespace: "here", Name: "s", Port: intstr.FromInt32(443)}
	if _, err := c.One(t.Context(), r); !services.IsReason(err, services.ReasonNotFound) {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after      time.Duration
		have, want string
	}{{0, "10.0.0.1", "10.0.0.1:443"}, {keptFor / 2, "10.0.0.2", "10.0.0.1:443"}, {keptFor / 2, "10.0.0.2", "10.0.0.2:443"}} {
		now = now.Add(step.after)
		store["services"] = service("ClusterIP", fmt.Sprintf(`,"clusterIP":%q`, step.have))
		if got, err := c.One(t.Context(), r); err != nil || got != step.want {
			t.Errorf("%+v: %s, %v", step, got, err)
		}
	}
}

// TestSpread: all addresses get requests.
func TestSpread(t *testing.T) {
	l := Locator{Store: objects{"services": service("ClusterIP", ""), "slices": slice1}, Vocabulary: vocabulary.K8s(), Endpoints: true}
	seen := map[string]bool{}
	for range 100 {
		at, err := l.One(t.Context(), Reference{Namespace: "here", Name: "s", Port: intstr.FromString("https")})
		if err != nil {
			t.Fatal(err)
		}
		seen[at] = true
	}
	if len(seen) != 2 {
		t.Errorf("asked %v", seen)
	}
}
