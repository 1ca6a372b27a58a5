package request

import (
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestToConnection: paths of connections are known by their names also where the type is not served.
func TestToConnection(t *testing.T) {
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	engine := &typesystem.Engine{Types: types}
	for path, want := range map[string]bool{
		"/api/v1/namespaces/a/pods/b/proxy/":              true,
		"/api/v1/namespaces/a/pods/b/proxy":               true,
		"/api/v1/namespaces/a/services/https:b:1/proxy/x": true,
		"/api/v1/nodes/b/proxy/x":                         true,
		"/api/v1/namespaces/a/pods/b/exec":                true,
		"/api/v1/namespaces/a/pods/b/attach":              true,
		"/api/v1/namespaces/a/pods/b/portforward":         true,
		"/api/v1/namespaces/a/pods/b/log":                 false,
		"/api/v1/namespaces/a/pods/b":                     false,
		"/api/v1/namespaces/a/pods/proxy":                 false,
		"/api/v1/namespaces/a/configmaps/b/proxy":         false,
		"/metrics": false,
	} {
		for _, known := range []bool{true, false} {
			r := &Request{Request: httptest.NewRequest("GET", path, nil)}
			if _, err := r.Identify(engine); err != nil {
				t.Fatal(path, err)
			}
			if !known {
				r.Type, r.Subresource, r.Plain = nil, nil, refuse(NoPath())
			}
			if got := r.ToConnection(); got != want {
				t.Errorf("%s, served %v: got %v", path, known, got)
			}
		}
	}
}
