package reviews

import (
	"reflect"
	"slices"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
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
		{"self", `{"metadata":{"labels":{}},"spec":{}}`, []string{"metadata", "spec.resourceAttributes"}},
		{"local", `{"spec":{"user":"a",` + root + `}}`, []string{"spec.nonResourceAttributes"}},
		{"local", `{"spec":{"user":"a","resourceAttributes":{"namespace":"there"}}}`, []string{"spec.resourceAttributes.namespace"}},
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

// TestWhy: the status of a TokenReview has the authenticator's error, if there is one.
func TestWhy(t *testing.T) {
	for message, want := range map[string]string{"Unauthorized": "invalid bearer token", "": "invalid bearer token", "expired": "expired"} {
		if got := why(&services.Status{Reason: services.ReasonUnauthorized, Message: message}); got != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}
