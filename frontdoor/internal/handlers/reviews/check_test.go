package reviews

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestQuestions checks the validation of access reviews.
func TestQuestions(t *testing.T) {
	of := map[string]*catalogue.Type{
		"all":   {Resource: "subjectaccessreviews", Kind: "SubjectAccessReview"},
		"local": {Resource: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", Namespaced: true},
		"self":  {Resource: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview"},
	}
	const pods, root = `"resourceAttributes":{"namespace":"here"}`, `"nonResourceAttributes":{"path":"/"}`
	for _, c := range []struct {
		whose, review string
		want          []string // invalid fields
	}{
		{"all", `{"spec":{"user":"a",` + pods + `}}`, nil},
		{"all", `{"spec":{"groups":["a"],` + root + `}}`, nil},
		{"self", `{"spec":{` + root + `}}`, nil},
		{"local", `{"metadata":{"namespace":"here"},"spec":{"user":"a",` + pods + `}}`, nil},
		{"all", `{"spec":{}}`, []string{"spec.resourceAttributes", "spec.user"}},
		{"all", `{"spec":{"user":"a",` + pods + `,` + root + `}}`, []string{"spec.nonResourceAttributes"}},
		{"all", `{"metadata":{"name":"a"},"spec":{"user":"a",` + root + `}}`, []string{"metadata"}},
		{"self", `{"metadata":{"labels":{"a":"b"}},"spec":{}}`, []string{"metadata", "spec.resourceAttributes"}},
		{"self", `{"metadata":{"name":"","labels":{}},"spec":{` + root + `}}`, nil},
		{"local", `{"spec":{"user":"a",` + root + `}}`, []string{"spec.nonResourceAttributes"}},
		{"local", `{"spec":{"user":"a","resourceAttributes":{"namespace":"there"}}}`, []string{"spec.resourceAttributes.namespace"}},
		{"self", `{"spec":{"resourceAttributes":{"fieldSelector":{"rawSelector":"a=b"},"labelSelector":{"requirements":[{"key":"a","operator":"Later","values":["b"]}]}}}}`, nil},
		{"self", `{"spec":{"resourceAttributes":{"fieldSelector":{},"labelSelector":{"rawSelector":"a","requirements":[{"key":"a","operator":"Exists"}]}}}}`,
			[]string{"spec.resourceAttributes.fieldSelector.requirements", "spec.resourceAttributes.labelSelector.rawSelector"}},
		{"self", `{"spec":{"resourceAttributes":{"fieldSelector":{"requirements":[{"operator":"In"},{"key":"a","operator":"Exists","values":["b"]}]}}}}`,
			[]string{"spec.resourceAttributes.fieldSelector.requirements[0].key", "spec.resourceAttributes.fieldSelector.requirements[0].values", "spec.resourceAttributes.fieldSelector.requirements[1].values"}},
		{"self", `{"spec":{"resourceAttributes":{"labelSelector":{"requirements":[{"key":"a b","operator":"In","values":["-"]}]}}}}`,
			[]string{"spec.resourceAttributes.labelSelector.requirements[0].key", "spec.resourceAttributes.labelSelector.requirements[0].values[0]"}},
	} {
		r := &request.Request{Type: of[c.whose], Namespace: "here"}
		spec, err := readSpec[accessSpec]([]byte(c.review))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := checkAccess(r, []byte(c.review), spec.SubjectAccessReviewSpec); err != nil {
			for _, cause := range services.AsStatus(err).Details.Causes {
				got = append(got, cause.Field)
			}
		}
		slices.Sort(got)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %v, want %v", c.whose, c.review, got, c.want)
		}
	}
}

// TestLongSelectors: selectors are refused before they are parsed, raw or structured, of labels or fields.
func TestLongSelectors(t *testing.T) {
	for selector, field := range map[string]string{
		`"labelSelector":{"rawSelector":"` + strings.Repeat("a,", 1_400_000) + `a"}`:                                             "labelSelector.rawSelector",
		`"fieldSelector":{"rawSelector":"` + strings.Repeat("a=b,", 700_000) + `a=b"}`:                                           "fieldSelector.rawSelector",
		`"labelSelector":{"rawSelector":"` + strings.Repeat("a,", 20_000) + `a"}`:                                                "labelSelector.rawSelector",
		`"labelSelector":{"requirements":[` + strings.Repeat(`{},`, 20_000) + `{}]}`:                                             "labelSelector.requirements",
		`"fieldSelector":{"requirements":[` + strings.Repeat(`{},`, 20_000) + `{}]}`:                                             "fieldSelector.requirements",
		`"labelSelector":{"requirements":[{"key":"a","operator":"In","values":[` + strings.Repeat(`"b",`, 20_000) + `"b"]}]}`:    "labelSelector.requirements",
		`"fieldSelector":{"requirements":[{"key":"a","operator":"NotIn","values":[` + strings.Repeat(`"b",`, 20_000) + `"b"]}]}`: "fieldSelector.requirements",
	} {
		review := []byte(`{"spec":{"resourceAttributes":{` + selector + `}}}`)
		spec, err := readSpec[accessSpec](review)
		if err != nil {
			t.Fatal(err)
		}
		r := &request.Request{Type: &catalogue.Type{Resource: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview"}}
		status := services.AsStatus(checkAccess(r, review, spec.SubjectAccessReviewSpec))
		if status == nil || status.Code != http.StatusUnprocessableEntity || len(status.Details.Causes) != 1 ||
			status.Details.Causes[0].Field != "spec.resourceAttributes."+field {
			t.Errorf("%.60s: %.300v, want one cause for %s", selector, status, field)
		}
	}
}

// TestNamespaceOfReview: a review has the namespace of the path.
func TestNamespaceOfReview(t *testing.T) {
	for _, c := range []struct {
		namespaced bool
		given      string
		want       any
		refused    bool
	}{{true, "", "here", false}, {true, "here", "here", false}, {true, "there", "there", true}, {false, "there", nil, false}} {
		object := map[string]any{"metadata": map[string]any{"namespace": c.given}}
		err := settleNamespace(&request.Request{Type: &catalogue.Type{Namespaced: c.namespaced}, Namespace: "here"}, object)
		if got := object["metadata"].(map[string]any)["namespace"]; got != c.want || c.refused != (err != nil) {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// TestAnswered: the answers to callers about themselves have nothing of what was sent.
func TestAnswered(t *testing.T) {
	for resource, want := range map[string][]string{
		"selfsubjectreviews":      {"apiVersion", "kind", "metadata.creationTimestamp"},
		"selfsubjectrulesreviews": {"apiVersion", "kind", "metadata", "spec"},
		"subjectaccessreviews":    {"apiVersion", "kind", "metadata.name", "spec.namespace"},
	} {
		sent := map[string]any{"apiVersion": "g/v1", "kind": "K", "metadata": map[string]any{"name": "n"}, "spec": map[string]any{"namespace": "here"}}
		var got []string
		for name, value := range answered(&request.Request{Type: &catalogue.Type{Resource: resource}}, sent) {
			if fields, ok := value.(map[string]any); ok && len(fields) > 0 {
				for field := range fields {
					got = append(got, name+"."+field)
				}
				continue
			}
			got = append(got, name)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", resource, got, want)
		}
	}
}

// TestWhy: the status of a TokenReview has the authenticator's error, if there is one.
func TestWhy(t *testing.T) {
	for message, want := range map[string]string{"Unauthorized": "invalid bearer token", "": "invalid bearer token", "expired": "expired"} {
		if got := why(&services.Status{Reason: services.ReasonUnauthorized, Message: message}); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// accepting is an authn that accepts every token for the audiences that are requested, or those of the API.
type accepting struct{}

func (accepting) Authenticate(_ context.Context, c services.Credentials) (services.Authentication, error) {
	if len(c.Audiences) == 0 {
		c.Audiences = []string{"api"}
	}
	return services.Authentication{Audiences: c.Audiences}, nil
}

// TestAudiences: a TokenReview that requests no audience has those of the API in its status, in the vocabulary
// of Kubernetes; in the other one none means these.
func TestAudiences(t *testing.T) {
	for _, c := range []struct {
		vocabulary vocabulary.Vocabulary
		asks, want []string
	}{
		{vocabulary.K8s(), nil, []string{"api"}}, {vocabulary.K8s(), []string{"vault"}, []string{"vault"}},
		{vocabulary.Platform(), nil, nil}, {vocabulary.Platform(), []string{"vault"}, []string{"vault"}},
	} {
		h := &Handlers{Authn: accepting{}, Vocabulary: c.vocabulary}
		status, err := h.tokenStatus(t.Context(), authenticationv1.TokenReviewSpec{Token: "t", Audiences: c.asks})
		if got := status.(authenticationv1.TokenReviewStatus).Audiences; err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, asked for %q: %q, %v, want %q", c.vocabulary.Name, c.asks, got, err, c.want)
		}
	}
}

// TestSelectors: the selectors of a review reach the authorizer in the syntax of the API; what
// cannot be expressed in it is ignored.
func TestSelectors(t *testing.T) {
	const field, label = "spec.resourceAttributes.fieldSelector", "spec.resourceAttributes.labelSelector"
	for _, c := range []struct{ attributes, byField, byLabel, ignored string }{
		{`{}`, "", "", ""},
		{`{"fieldSelector":{"rawSelector":"spec.nodeName==a,b!=c"},"labelSelector":{"rawSelector":"x in (b, a),!y"}}`, "b!=c,spec.nodeName=a", "x in (a,b),!y", ""},
		{`{"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b=c,d"]},{"key":"e","operator":"NotIn","values":[""]}]}}`, `a=b\=c\,d,e!=`, "", ""},
		{`{"labelSelector":{"requirements":[{"key":"a","operator":"NotIn","values":["b"]},{"key":"c","operator":"Exists"},{"key":"d","operator":"DoesNotExist"}]}}`, "", "a notin (b),c,!d", ""},
		{`{"fieldSelector":{"rawSelector":"a"},"labelSelector":{"rawSelector":"="}}`, "", "", field + " ignored due to parse error; " + label + " ignored due to parse error"},
		{`{"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b","c"]},{"key":"a","operator":"In","values":["b"]}]}}`, "a=b", "", field + " partially ignored due to parse error"},
		{`{"labelSelector":{"requirements":[{"key":"a","operator":"Later","values":["b"]}]}}`, "", "", label + " ignored due to parse error"},
	} {
		var attributes authorizationv1.ResourceAttributes
		if err := json.Unmarshal([]byte(c.attributes), &attributes); err != nil {
			t.Fatal(err)
		}
		byField, byLabel, ignored := selectors(&attributes)
		if byField != c.byField || byLabel != c.byLabel || ignored != c.ignored {
			t.Errorf("%s: %q, %q, %q", c.attributes, byField, byLabel, ignored)
		}
	}
}
