// Package definitions tests that CustomResourceDefinitions cannot affect the objects of
// other types, and that their own objects are deleted with them. It uses only the API of a
// running suite. It serves "Groups and paths" and "Two-phase deletion of a resource" of the
// specification.
package definitions

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Names are the names in the spec of a definition.
type Names struct {
	Plural   string `json:"plural"`
	Singular string `json:"singular,omitempty"`
	Kind     string `json:"kind"`
	ListKind string `json:"listKind,omitempty"`
}

// Definition returns the manifest of a definition of cluster-wide objects with any
// fields, approved of in case its group is protected.
func Definition(c *cluster.Cluster, group, version string, names Names) string {
	raw, _ := json.Marshal(map[string]any{ // plain values always encode
		"apiVersion": c.Vocabulary.Group("apiextensions.") + "/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": names.Plural + "." + group,
			"annotations": map[string]any{"api-approved." + c.Vocabulary.Domain: "https://example.com/approved"}},
		"spec": map[string]any{"group": group, "scope": "Cluster", "names": names,
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", c.Vocabulary.Extension + "preserve-unknown-fields": true}}}}},
	})
	return string(raw)
}

// path returns where definitions are.
func path(c *cluster.Cluster) string {
	return "/apis/" + c.Vocabulary.Group("apiextensions.") + "/v1/customresourcedefinitions"
}

func post(path, body string) cluster.Request {
	return cluster.Request{Method: http.MethodPost, Path: path, Body: body}
}

// must sends a request that has to be answered with success.
func must(t *testing.T, c *cluster.Cluster, r cluster.Request) cluster.Answer {
	t.Helper()
	a := c.Ask(t, r)
	if a.Code >= 300 {
		t.Fatalf("%s %s: %d %.300s", r.Method, r.Path, a.Code, a.Body)
	}
	return a
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.After(time.Minute); !holds(); {
		select {
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		case <-ticks.C:
		}
	}
}

// Approval tries to get a certificate of an administrator signed by approving it in a
// version of certificate signing requests that a custom definition adds.
func Approval(t *testing.T, c *cluster.Cluster) {
	group := c.Vocabulary.Group("certificates.")
	names := Names{Plural: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest", ListKind: "CertificateSigningRequestList"}
	mustBeTaken(t, c, takeover{group, "v9", names}, "spec.names.plural", "spec.names.singular", "spec.names.kind", "spec.names.listKind")
	request := func(version, name string) string {
		return fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"CertificateSigningRequest","metadata":{"name":%q},
			"spec":{"signerName":%q,"usages":["client auth"],"request":%q},
			"status":{"conditions":[{"type":"Approved","status":"True","reason":"Self","message":"mine"}]}}`,
			group, version, name, c.Vocabulary.Signers.LegacyUnknown, administratorsRequest(t))
	}
	collection := "/apis/" + group + "/v9/certificatesigningrequests"
	if a := c.Ask(t, post(collection, request("v9", "taken"))); a.Code != http.StatusNotFound {
		t.Errorf("a certificate request of another version: %d %s", a.Code, a.Body)
	}
	const name = "e2e-self-approved"
	must(t, c, post("/apis/"+group+"/v1beta1/certificatesigningrequests", request("v1beta1", name)))
	if a := c.Ask(t, cluster.Request{Method: http.MethodPut, Path: collection + "/" + name, Body: request("v9", name)}); a.Code != http.StatusNotFound {
		t.Errorf("approving of a certificate request in another version: %d %s", a.Code, a.Body)
	}
	read := must(t, c, cluster.Request{Path: "/apis/" + group + "/v1/certificatesigningrequests/" + name})
	if strings.Contains(read.Body, "Approved") || strings.Contains(read.Body, `"certificate":`) {
		t.Errorf("it is approved of: %s", read.Body)
	}
}

// administratorsRequest returns a PKCS#10 request for a certificate of the group of
// those who may do everything.
func administratorsRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "mallory", Organization: []string{"system:masters"}}
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}))
}

// takeover is a definition with names of built-in types.
type takeover struct {
	group, version string
	names          Names
}

// mustBeTaken defines types with names of built-in ones: the error has the fields.
func mustBeTaken(t *testing.T, c *cluster.Cluster, of takeover, fields ...string) {
	t.Helper()
	group, version, names := of.group, of.version, of.names
	definition := Definition(c, group, version, names)
	attempts := []cluster.Request{post(path(c), definition), post(path(c)+"?dryRun=All", definition),
		{Method: http.MethodPatch, Path: path(c) + "/" + names.Plural + "." + group + "?fieldManager=e2e", Type: "application/apply-patch+yaml", Body: definition}}
	for _, attempt := range attempts {
		a := c.Ask(t, attempt)
		var status cluster.Status
		a.Decode(t, &status)
		var refused []string
		for _, cause := range status.Details.Causes {
			refused = append(refused, cause.Field)
		}
		slices.Sort(refused)
		slices.Sort(fields)
		if a.Code != http.StatusUnprocessableEntity || !slices.Equal(refused, fields) {
			t.Errorf("%s of %s.%s %s: %d %v, want %v", attempt.Method, names.Plural, group, version, a.Code, refused, fields)
		}
	}
	if a := c.Ask(t, cluster.Request{Method: http.MethodDelete, Path: path(c) + "/" + names.Plural + "." + group}); a.Code != http.StatusNotFound {
		t.Errorf("deleting %s.%s: %d", names.Plural, group, a.Code)
	}
}

// Deletion tries to delete built-in objects together with a definition of their names:
// in another version, and in their own.
func Deletion(t *testing.T, c *cluster.Cluster) {
	rbac, coordination, storage := c.Vocabulary.Group("rbac.authorization."), c.Vocabulary.Group("coordination."), c.Vocabulary.Group("storage.")
	bindings, leases, classes := "/apis/"+rbac+"/v1/clusterrolebindings", "/apis/"+coordination+"/v1/namespaces/default/leases", "/apis/"+storage+"/v1/storageclasses"
	const name = "e2e-stays"
	must(t, c, post(bindings, `{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"view"}}`))
	must(t, c, post(leases, `{"metadata":{"name":"`+name+`"}}`))
	must(t, c, post(classes, `{"metadata":{"name":"`+name+`"},"provisioner":"example.com/none"}`))
	for _, version := range []string{"v1", "v9"} {
		mustBeTaken(t, c, takeover{rbac, version, Names{Plural: "clusterrolebindings", Kind: "Invention"}}, "spec.names.plural")
		mustBeTaken(t, c, takeover{coordination, version, Names{Plural: "leases", Singular: "lease", Kind: "Lease"}},
			"spec.names.plural", "spec.names.singular", "spec.names.kind", "spec.names.listKind")
		mustBeTaken(t, c, takeover{storage, version, Names{Plural: "inventions", Singular: "invention", Kind: "StorageClass", ListKind: "Inventions"}}, "spec.names.kind")
		mustBeTaken(t, c, takeover{storage, version, Names{Plural: "inventions", Singular: "storageclasses", Kind: "Invention"}}, "spec.names.singular")
	}
	for _, path := range []string{bindings, leases, classes} {
		must(t, c, cluster.Request{Path: path + "/" + name})
	}
}

// OwnObjects tests a valid definition: only the service sets its status, requests for the
// objects of another definition are rejected, and its objects are deleted with it.
func OwnObjects(t *testing.T, c *cluster.Cluster) {
	const group, name = "definitions.example.com", "/forgeries.definitions.example.com"
	things, definition := "/apis/"+group+"/v1/forgeries", Definition(c, group, "v1", Names{Plural: "forgeries", Kind: "Forgery"})
	define := func() (uid string) {
		must(t, c, post(path(c), definition))
		eventually(t, "the type is served", func() bool { return c.Ask(t, cluster.Request{Path: things}).Code == http.StatusOK })
		var made struct{ Metadata struct{ UID string } }
		must(t, c, cluster.Request{Path: path(c) + name}).Decode(t, &made)
		return made.Metadata.UID
	}
	uid := define()
	forged := must(t, c, cluster.Request{Method: http.MethodPatch, Path: path(c) + name + "/status", Type: "application/merge-patch+json",
		Body: `{"status":{"acceptedNames":{"plural":"leases","kind":"Lease"},"conditions":[{"type":"Established","status":"False"},{"type":"Mine","status":"True"}]}}`})
	var read struct {
		Status struct {
			AcceptedNames Names
			Conditions    []struct{ Type, Status string }
		}
	}
	forged.Decode(t, &read)
	if read.Status.AcceptedNames.Plural != "forgeries" || !slices.Contains(read.Status.Conditions, struct{ Type, Status string }{"Established", "True"}) ||
		!slices.Contains(read.Status.Conditions, struct{ Type, Status string }{"Mine", "True"}) || len(read.Status.Conditions) != 3 {
		t.Errorf("the status is that of a client: %+v", read.Status)
	}
	must(t, c, post(things, `{"apiVersion":"`+group+`/v1","kind":"Forgery","metadata":{"name":"a"}}`))
	leases := "/apis/" + c.Vocabulary.Group("coordination.") + "/v1/namespaces/default/leases"
	for request, code := range map[string]int{things + "?fieldSelector=definition.uid%3D" + uid: 200, things + "?fieldSelector=definition.uid%3Danother": 409,
		leases + "?fieldSelector=definition.uid%3D" + uid: 400} {
		if a := c.Ask(t, cluster.Request{Path: request}); a.Code != code {
			t.Errorf("GET %s: %d %s", request, a.Code, a.Body)
		}
		if a := c.Ask(t, cluster.Request{Method: http.MethodDelete, Path: request + "&dryRun=All"}); a.Code != code {
			t.Errorf("DELETE %s: %d %s", request, a.Code, a.Body)
		}
	}
	// Objects go with their definition, also when none of its versions is served.
	must(t, c, cluster.Request{Method: http.MethodPatch, Path: path(c) + name, Type: "application/json-patch+json",
		Body: `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`})
	must(t, c, cluster.Request{Method: http.MethodDelete, Path: path(c) + name})
	eventually(t, "the definition is gone", func() bool { return c.Ask(t, cluster.Request{Path: path(c) + name}).Code == http.StatusNotFound })
	eventually(t, "the type is gone", func() bool { return c.Ask(t, cluster.Request{Path: things}).Code == http.StatusNotFound })
	define()
	if left := must(t, c, cluster.Request{Path: things}); !strings.Contains(left.Body, `"items":[]`) {
		t.Errorf("objects of the definition before: %s", left.Body)
	}
	must(t, c, cluster.Request{Method: http.MethodDelete, Path: path(c) + name})
}
