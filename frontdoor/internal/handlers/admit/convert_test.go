package admit

import (
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

func ingressType(group, version string) services.ServedType {
	return services.ServedType{Group: group, Version: version, Resource: "ingresses", KindGroup: group, KindVersion: version, Kind: "Ingress"}
}

// TestConversions: the objects of a request are converted to every type that serves them, also
// of another group, and back without a loss; to no other type, and from no other.
func TestConversions(t *testing.T) {
	e := handlertest.Engine(t)
	ingresses, ok := e.Types.Lookup("extensions", "v1beta1", "ingresses")
	if !ok {
		t.Fatal("there are no ingresses in extensions")
	}
	a := &admission{}
	r := &request.Request{Engine: e, Type: ingresses, Audit: &audit.Record{}}
	review := Write(a, r, request.WriteOptions{}).Review(Subject{Operation: services.OperationCreate, Type: ingresses})
	if _, err := review.Mutate(t.Context(), Object{}); err != nil {
		t.Fatal(err)
	}
	question := a.requests[0]
	old, current := ingressType("extensions", "v1beta1"), ingressType("networking.k8s.io", "v1")
	if want := []services.ServedType{old, current, ingressType("networking.k8s.io", "v1beta1")}; !reflect.DeepEqual(question.Served, want) {
		t.Fatalf("served %v, want %v", question.Served, want)
	}
	const object = `{"apiVersion":"extensions/v1beta1","kind":"Ingress","metadata":{"name":"a"},"spec":{"backend":{"serviceName":"s","servicePort":80}}}`
	const converted = `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"a"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`
	got, err := question.Converter.Convert(t.Context(), []byte(object), current)
	if err != nil || string(got) != converted {
		t.Errorf("%s, %v", got, err)
	}
	if got, err = question.Converter.Convert(t.Context(), got, old); err != nil || string(got) != object {
		t.Errorf("%s, %v", got, err)
	}
	pods := services.ServedType{Version: "v1", Resource: "pods", KindVersion: "v1", Kind: "Pod"}
	for text, to := range map[string]services.ServedType{object: pods, `{"apiVersion":"v1","kind":"Pod"}`: current, `[]`: current, `{}`: current,
		strings.Replace(object, "v1beta1", "v7", 1): current} {
		if got, err := question.Converter.Convert(t.Context(), []byte(text), to); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%s to %v: %s, %v", text, to, got, err)
		}
	}
}

// TestServedWithSubresource: only types that have the subresource serve it.
func TestServedWithSubresource(t *testing.T) {
	e := handlertest.Engine(t)
	deployments, ok := e.Types.Lookup("apps", "v1", "deployments")
	if !ok {
		t.Fatal("there are no deployments")
	}
	got := served(&request.Request{Engine: e, Type: deployments, Subresource: deployments.Subresources["scale"]})
	if want := (services.ServedType{Group: "apps", Version: "v1", Resource: "deployments", KindGroup: "autoscaling", KindVersion: "v1", Kind: "Scale"}); len(got) != 1 || got[0] != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestConversionsOfReviews: virtual types have versions, too.
func TestConversionsOfReviews(t *testing.T) {
	e := handlertest.Engine(t)
	const group = "authorization.k8s.io"
	reviews, ok := e.Types.Lookup(group, "v1beta1", "subjectaccessreviews")
	if !ok {
		t.Fatal("there are no SubjectAccessReviews")
	}
	r := &request.Request{Engine: e, Type: reviews}
	to := services.ServedType{Group: group, Version: "v1", Resource: "subjectaccessreviews", KindGroup: group, KindVersion: "v1", Kind: "SubjectAccessReview"}
	if got := served(r); len(got) != 2 || got[1] != to {
		t.Fatalf("served %v", got)
	}
	got, err := converter{r}.Convert(t.Context(), []byte(`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","spec":{"group":["a"],"user":"b"}}`), to)
	if want := `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"groups":["a"],"user":"b"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}
