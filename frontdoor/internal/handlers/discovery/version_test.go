package discovery_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestVersion checks that /version shows the emulated version from the release on that has
// these fields.
func TestVersion(t *testing.T) {
	if v := discovery.Version(release.V121); v.Major != "1" || v.Minor != "21" || v.GitVersion != "v1.21.14+portico" || v.EmulationMinor != "" || v.MinCompatibilityMinor != "" {
		t.Errorf("1.21: %+v", v)
	}
	if v := discovery.Version(release.V136); v.Minor != "36" || v.GitVersion != "v1.36.3+portico" || v.EmulationMajor != "1" || v.EmulationMinor != "36" || v.MinCompatibilityMinor != "35" {
		t.Errorf("1.36: %+v", v)
	}
}

// TestServerAddress: the document of the core group has the address at which members of the cluster reach the server, once it
// is known.
func TestServerAddress(t *testing.T) {
	for address, want := range map[string][]metav1.ServerAddressByClientCIDR{
		"":               {},
		"192.0.2.1:6443": {{ClientCIDR: "0.0.0.0/0", ServerAddress: "192.0.2.1:6443"}},
	} {
		c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
		if err != nil {
			t.Fatal(err)
		}
		d := discovery.New(discovery.Options{Catalogue: c, Vocabulary: vocabulary.K8s(), Address: func() string { return address }})
		w := httptest.NewRecorder()
		if err := d.Serve(w, httptest.NewRequest(http.MethodGet, "/api", nil)); err != nil {
			t.Fatal(err)
		}
		var got metav1.APIVersions
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || !reflect.DeepEqual(got.ServerAddressByClientCIDRs, want) {
			t.Errorf("%q: %v, %v", address, got.ServerAddressByClientCIDRs, err)
		}
	}
}
