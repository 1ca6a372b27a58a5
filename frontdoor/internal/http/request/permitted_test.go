package request

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestAcrossPermitted(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, target string
		across, refuse bool
	}{
		{"GET", "/api/v1/pods?permitted=true", true, false},
		{"GET", "/api/v1/pods?permitted=1&watch=1&limit=3", true, false},
		{"GET", "/api/v1/watch/pods?permitted", true, false},
		{"GET", "/apis/apps/v1/deployments?permitted=true", true, false},
		{"GET", "/api/v1/pods?permitted=false", false, false},
		{"GET", "/api/v1/pods?permitted=0", false, false},
		{"GET", "/api/v1/pods", false, false},
		{"GET", "/api/v1/namespaces/a/pods?permitted=true", false, true},
		{"GET", "/api/v1/namespaces/a/pods/x?permitted=true", false, true},
		{"GET", "/api/v1/nodes?permitted=true", false, true},
		{"GET", "/api/v1/namespaces?permitted=true", false, true},
		{"DELETE", "/api/v1/namespaces/a/pods?permitted=true", false, true},
		{"GET", "/api/v1/unknown?permitted=true", false, false},
	} {
		r := &Request{Request: httptest.NewRequestWithContext(t.Context(), c.method, c.target, http.NoBody)}
		if _, err := r.Identify(&typesystem.Engine{Types: types}); err != nil {
			t.Fatal(c.target, err)
		}
		err := r.CheckPermitted()
		if r.AcrossPermitted() != c.across || c.refuse != services.IsReason(err, services.ReasonBadRequest) || !c.refuse && err != nil {
			t.Errorf("%s %s: %v, %v", c.method, c.target, r.AcrossPermitted(), err)
		}
	}
}
