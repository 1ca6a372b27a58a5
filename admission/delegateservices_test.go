package admission_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/resource"
)

var (
	clusterServices = resource.GroupResource{Resource: "services"}
	endpointSlices  = resource.GroupResource{Group: "discovery.platform.io", Resource: "endpointslices"}
)

// slice stores an EndpointSlice of the Service digests with one endpoint.
func slice(t *testing.T, c *fake.Cluster, name, address string, ready bool) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	c.Put(t, endpointSlices, fmt.Sprintf(`{metadata: {name: %s, namespace: here, labels: {platform.io/service-name: digests}}, addressType: IPv4,
		ports: [{name: admission, port: %s}], endpoints: [{addresses: [%s], conditions: {ready: %t}}]}`, name, port, host, ready))
}

// TestServiceReferences: the ready endpoints of a Service are the replicas, all of them are
// asked, changes count while the service is in use, and its name is that in the certificate.
func TestServiceReferences(t *testing.T) {
	c := cluster(t)
	one, two := delegated(t, &delegate{name: "digests.here.svc"}), delegated(t, &delegate{name: "digests.here.svc"})
	c.Put(t, clusterServices, `{metadata: {name: digests, namespace: here}, spec: {type: ClusterIP, clusterIP: None, ports: [{name: admission, port: 443}]}}`)
	slice(t, c, "one", one.address, true)
	slice(t, c, "two", two.address, false)
	both := base64.StdEncoding.EncodeToString(append(one.ca, two.ca...))
	for name, port := range map[string]string{"by-name": `"admission"`, "by-number": "443"} {
		declare(t, c, name, fmt.Sprintf(`"endpoint":{"service":{"namespace":"here","name":"digests","port":%s}}`, port), fmt.Sprintf(`"trust":{"caBundle":%q}`, both))
	}
	a := started(t, c)
	ask := func(calls int) (ones, twos int) {
		t.Helper()
		one.requests()
		two.requests()
		for range calls {
			if _, err := a.Validate(t.Context(), named("c")); err != nil {
				t.Error(err)
			}
		}
		return len(one.requests()), len(two.requests())
	}
	if ones, twos := ask(5); ones != 10 || twos != 0 {
		t.Errorf("with one ready endpoint: %d, %d", ones, twos)
	}
	slice(t, c, "two", two.address, true)
	until(t, "both are asked", func() bool { ones, twos := ask(2); return ones > 0 && twos > 0 })
	if ones, twos := ask(20); ones < 10 || twos < 10 {
		t.Errorf("not balanced: %d, %d", ones, twos)
	}
	slice(t, c, "one", one.address, false)
	until(t, "only the other one is asked", func() bool { ones, _ := ask(5); return ones == 0 })
	if ones, twos := ask(5); ones != 0 || twos != 10 {
		t.Errorf("with the other endpoint: %d, %d", ones, twos)
	}
	slice(t, c, "one", one.address, true)
	until(t, "it is back", func() bool { ones, _ := ask(1); return ones > 0 })
}

// TestServiceThatMoves: a request that has begun is still decided by a service that gets
// another address and other rules meanwhile, and the next one is not.
func TestServiceThatMoves(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	began, removed := make(chan struct{}), make(chan struct{})
	first := delegated(t, &delegate{mutate: func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
		began <- struct{}{}
		<-removed
		return services.AdmissionResponse{}, nil
	}})
	second := delegated(t, &delegate{mutate: refusing})
	first.declare(t, c, "first", `"order":1`, `"phase":"Mutate"`, `"timeoutSeconds":30`, `"budgetPercent":100`)
	second.declare(t, c, "second", `"order":2`, `"phase":"Mutate"`, `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["configmaps","secrets"]}]`)
	a := started(t, c)
	decided := make(chan error)
	go func() {
		_, err := a.Mutate(t.Context(), named("c"))
		decided <- err
	}()
	<-began
	declare(t, c, "second", `"endpoint":{"addresses":["127.0.0.1:1"]}`, `"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["leases"]}]`)
	until(t, "admission knows the change", func() bool {
		_, err := a.Mutate(t.Context(), createOf("", "secrets", `{"metadata":{"name":"s"}}`))
		return err == nil
	})
	go func() {
		_, err := a.Mutate(t.Context(), named("c"))
		decided <- err
	}()
	<-began
	close(removed)
	var refused int
	for range 2 {
		if err := <-decided; err != nil {
			if !services.IsReason(err, services.ReasonForbidden) {
				t.Error(err)
			}
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d requests were refused", refused)
	}
}

// TestOtherServicesName: a replica whose certificate is not for the Service gets nothing.
func TestOtherServicesName(t *testing.T) {
	c := cluster(t)
	d := delegated(t, &delegate{name: "digests.elsewhere.svc"})
	c.Put(t, clusterServices, `{metadata: {name: digests, namespace: here}, spec: {type: ClusterIP, clusterIP: 127.0.0.1, ports: [{name: admission, port: 443}]}}`)
	slice(t, c, "one", d.address, true)
	declare(t, c, "one", `"endpoint":{"service":{"namespace":"here","name":"digests"}}`, `"timeoutSeconds":1`,
		fmt.Sprintf(`"trust":{"caBundle":%q}`, base64.StdEncoding.EncodeToString(d.ca)))
	_, err := started(t, c).Validate(t.Context(), named("c"))
	if err == nil || len(d.requests()) > 0 {
		t.Errorf("%v", err)
	}
}

// TestWebhooksOfServices: with --enable-aggregator-routing all ready endpoints of a Service are
// sent requests, otherwise its cluster IP is.
func TestWebhooksOfServices(t *testing.T) {
	c := cluster(t)
	remotes := []*remote{serve(t), serve(t)}
	var ca []byte
	for i, s := range remotes {
		at, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		ca = append(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})...)
		slice(t, c, fmt.Sprint("slice-", i), at.Host, true)
	}
	c.Put(t, clusterServices, `{metadata: {name: digests, namespace: here}, spec: {type: ClusterIP, clusterIP: None, ports: [{name: admission, port: 443}]}}`)
	// The certificate of the test's server has another name than the Service.
	trust := fmt.Sprintf(`"trust":{"serverName":"example.com","caBundle":%q}`, base64.StdEncoding.EncodeToString(ca))
	declare(t, c, "one", `"protocol":"webhook"`, `"endpoint":{"service":{"namespace":"here","name":"digests","port":"admission","path":"/one"}}`, trust)
	configure(t, c, "validating", "hook", fmt.Sprintf(`{name: a.b.c, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Fail, rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: [secrets]}],
		clientConfig: {caBundle: %s, service: {namespace: here, name: digests, path: hook}}}`, base64.StdEncoding.EncodeToString(ca)))
	a := started(t, c, "--enable-aggregator-routing")
	for range 40 {
		if _, err := a.Validate(t.Context(), named("c")); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range remotes {
		if n := len(s.calls()); n == 0 {
			t.Errorf("endpoint %d was not asked", i)
		}
	}
	if _, err := a.Validate(t.Context(), createOf("", "secrets", `{}`)); err == nil || !strings.Contains(err.Error(), `Post "https://digests.here.svc:443/hook?timeout=10s"`) || !strings.Contains(err.Error(), "not digests.here.svc") {
		t.Errorf("a server with another name: %v", err)
	}
	if _, err := started(t, c).Validate(t.Context(), named("c")); err == nil || !strings.Contains(err.Error(), `service with ClusterIP "None"`) {
		t.Errorf("without routing: %v", err)
	}
}
