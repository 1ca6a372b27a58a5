// Package replacing has bodies that create, replace, apply and delete the smallest manifest
// of every kind. It serves "Endpoints" of the specification.
package replacing

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// immutable are the kinds whose minimal manifest lacks what the service fills in at the
// creation and never lets go of, so that its replacement is refused.
var immutable = map[string]string{"Job": "spec.selector"}

// conditional are the kinds that are replaced at a known version only.
var conditional = map[string]bool{
	"PodDisruptionBudget": true, "Lease": true, "RuntimeClass": true, "CSIDriver": true, "CSINode": true, "CSIStorageCapacity": true, "VolumeAttachment": true,
	"MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true, "CustomResourceDefinition": true, "APIService": true, "AdmissionService": true,
}

// Replacements creates an object from each minimal manifest and replaces it by the same
// manifest with a label, as `kubectl replace` does. Every kind that can be replaced has
// to be among the manifests.
func Replacements(t *testing.T, c *cluster.Cluster) {
	namespace := newNamespace(t, c)
	served := replaceable(t, c, namespace)
	made := map[string]bool{}
	for _, object := range manifests(t, c, namespace, minimal) {
		name := nameOf(object)
		kind, ok := served[name]
		if made[name] = true; !ok {
			t.Errorf("%s is not served", name)
			continue
		}
		t.Run(name, func(t *testing.T) { kind.replace(t, c, object) })
	}
	for name := range served {
		if !made[name] {
			t.Errorf("there is no minimal manifest of %s", name)
		}
	}
}

// served is a kind that can be replaced.
type served struct {
	path       string
	namespaced bool
}

// replaceable returns the kinds of the service's own groups that can be created and
// replaced, by their version and kind.
func replaceable(t *testing.T, c *cluster.Cluster, namespace string) map[string]served {
	found := map[string]served{}
	versions := []string{"v1"}
	var groups metav1.APIGroupList
	c.Ask(t, cluster.Request{Path: "/apis"}).Decode(t, &groups)
	for _, group := range groups.Groups {
		if strings.HasSuffix(group.Name, "example.com") {
			continue // defined by other tests
		}
		for _, version := range group.Versions {
			versions = append(versions, version.GroupVersion)
		}
	}
	for _, version := range versions {
		path := "/apis/" + version
		if version == "v1" {
			path = "/api/v1"
		}
		var list metav1.APIResourceList
		c.Ask(t, cluster.Request{Path: path}).Decode(t, &list)
		for _, r := range list.APIResources {
			verbs := strings.Join(r.Verbs, " ")
			if strings.Contains(verbs, "create") && strings.Contains(verbs, "update") && !strings.Contains(r.Name, "/") {
				k := served{path + "/" + r.Name, r.Namespaced}
				if r.Namespaced {
					k.path = path + "/namespaces/" + namespace + "/" + r.Name
				}
				found[version+" "+r.Kind] = k
			}
		}
	}
	return found
}

func (k served) replace(t *testing.T, c *cluster.Cluster, object *unstructured.Unstructured) {
	path := k.path + "/" + object.GetName()
	do := func(method, path string, code int) string {
		t.Helper()
		r := cluster.Request{Method: method, Path: path}
		if method == http.MethodPost || method == http.MethodPut {
			encoded, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			r.Body = string(encoded)
		}
		answer := c.Ask(t, r)
		if answer.Code != code && code != 0 {
			t.Fatalf("%s %s %s\ngot %d, want %d: %.500s", method, path, r.Body, answer.Code, code, answer.Body)
		}
		return answer.Body
	}
	do(http.MethodPost, k.path, c.Vocabulary.Behaviour.CreatedStatus)
	if !k.namespaced {
		defer do(http.MethodDelete, path, http.StatusOK)
	}
	object.SetLabels(map[string]string{"new": "label"})
	if field := immutable[object.GetKind()]; field != "" {
		if refused := do(http.MethodPut, path, http.StatusUnprocessableEntity); !strings.Contains(refused, `"`+field+`"`) {
			t.Errorf("the answer does not name %s: %s", field, refused)
		}
		return
	}
	if conditional[object.GetKind()] {
		if refused := do(http.MethodPut, path, http.StatusUnprocessableEntity); !strings.Contains(refused, `"metadata.resourceVersion"`) {
			t.Errorf("replaced without a version: %s", refused)
		}
	}
	// A write between the two changes makes another attempt necessary, as it does for a client.
	for attempt := 0; ; attempt++ {
		if conditional[object.GetKind()] {
			var live unstructured.Unstructured
			if err := live.UnmarshalJSON([]byte(do(http.MethodGet, path, http.StatusOK))); err != nil {
				t.Fatal(err)
			}
			object.SetResourceVersion(live.GetResourceVersion())
		}
		answer := do(http.MethodPut, path, 0)
		if strings.Contains(answer, `"new":"label"`) {
			return
		}
		if !strings.Contains(answer, `"reason":"Conflict"`) || attempt == 10 {
			t.Fatalf("PUT %s: %s", path, answer)
		}
	}
}

// newNamespace makes a namespace with its default service account.
func newNamespace(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	var made unstructured.Unstructured
	c.Ask(t, cluster.Request{Method: http.MethodPost, Path: "/api/v1/namespaces",
		Body: `{"apiVersion":"v1","kind":"Namespace","metadata":{"generateName":"e2e-manifests-"}}`}).Decode(t, &made.Object)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := c.Await(ctx, "/api/v1/namespaces/"+made.GetName()+"/serviceaccounts/default"); err != nil {
		t.Fatal(err)
	}
	return made.GetName()
}

// signingRequest returns a certificate signing request in the form of a manifest, in PEM and
// without.
func signingRequest(t *testing.T) (encoded, stub string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "web"}}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	return text(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})), text(request)
}
