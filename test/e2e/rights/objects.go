package rights

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Certificates tests that a user who may write all subresources of certificate signing
// requests, but use no signer, cannot get a certificate.
func Certificates(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	g := c.Vocabulary.Group("certificates.")
	s.person("requester", rule(g, "certificatesigningrequests certificatesigningrequests/status certificatesigningrequests/approval", "create get update patch delete"))
	request := func(version, organization, rest string) string {
		return fmt.Sprintf(`{"apiVersion":"$certificates/%s","kind":"CertificateSigningRequest","metadata":{"name":%q},"spec":{"signerName":%q,"usages":["client auth"],"request":%q,
			"username":"admin","groups":["system:masters"]}%s}`, version, s.id, c.Vocabulary.Signers.Client, csr(t, organization), rest)
	}
	condition := func(kind string) string {
		return `{"status":{"conditions":[{"type":"` + kind + `","status":"True","reason":"a","message":"a"}]}}`
	}
	const approved = `,"status":{"conditions":[{"type":"Approved","status":"True","reason":"a","message":"a"}],"certificate":"YQ=="}`
	const list, one, older = "/apis/$certificates/v1/certificatesigningrequests", "/apis/$certificates/v1/certificatesigningrequests/$id", "/apis/$certificates/v1beta1/certificatesigningrequests/$id"
	s.Cleanup(func() { s.remove(one) })
	s.try([]attempt{
		{"a masters' request", "requester", "POST " + list, request("v1", "system:masters", ""), 403},
		{"a masters' request in v1beta1", "requester", "POST /apis/$certificates/v1beta1/certificatesigningrequests", request("v1beta1", "system:masters", ""), 403},
		{"a request that says it is approved", "requester", "POST " + list, request("v1", "dev", approved), 0},
		{"an update that says so", "requester", "PUT " + one, request("v1", "dev", approved), 0},
		{"another requester and key", "requester", "PUT " + one, request("v1", "system:masters", ""), 0},
		{"approval", "requester", "PATCH " + one + "/approval", condition("Approved"), 403},
		{"approval in v1beta1", "requester", "PATCH " + older + "/approval", condition("Approved"), 403},
		{"denial", "requester", "PATCH " + one + "/approval", condition("Denied"), 403},
		{"certificate", "requester", "PATCH " + one + "/status", `{"status":{"certificate":"` + certificate(t) + `"}}`, 403},
		{"certificate in v1beta1", "requester", "PATCH " + older + "/status", `{"status":{"certificate":"YQ=="}}`, 403},
		{"certificate by the path of approvals", "requester", "PATCH " + one + "/approval", `{"status":{"certificate":"YQ=="}}`, 403},
		{"failure", "requester", "PATCH " + one + "/status", condition("Failed"), 403},
		{"approval by the path of the status", "requester", "PATCH " + one + "/status", condition("Approved"), 422},
	})
	object := s.object(one)
	status, _ := object["status"].(map[string]any)
	spec := object["spec"].(map[string]any)
	if len(status) > 0 || !strings.HasSuffix(fmt.Sprint(spec["username"]), ":requester") || strings.Contains(fmt.Sprint(spec["groups"]), "masters") {
		t.Errorf("the request of %v in %v has the status %v", spec["username"], spec["groups"], status)
	}
}

// csr returns a certificate request of an organization, in the form of the API.
func csr(t *testing.T, organization string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// certificate returns a certificate, in the form of the API.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "jane"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// Objects lets people who may write some objects, but not all parts of them, try to
// write the other parts.
func Objects(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	const writing = "create update patch delete get list"
	s.person("owner", rule("", "namespaces nodes", writing)+","+rule(c.Vocabulary.Group("scheduling."), "priorityclasses", writing))
	s.person("editor", rule("", "configmaps", writing), "edit")
	class := func(name, rest string) string {
		return `{"apiVersion":"$scheduling/v1","kind":"PriorityClass","metadata":{"name":"` + name + `"},` + rest + `}`
	}
	const classes = " /apis/$scheduling/v1/priorityclasses"
	s.try([]attempt{
		{"a class with a name of the system", "owner", "POST" + classes, class("system-mine", `"value":1`), 422},
		{"a class above the users'", "owner", "POST" + classes, class("$id", `"value":2000000000`), 422},
		{"a class above the users' by apply", "owner", "PATCH+apply" + classes + "/$id?fieldManager=x", class("$id", `"value":2000000000`), 422},
		{"a class of the system as the default", "owner", "PATCH" + classes + "/system-node-critical", `{"globalDefault":true}`, 422},
		{"another value", "owner", "PATCH" + classes + "/system-node-critical", `{"value":5}`, 422},
		{"the finalizers of a namespace", "owner", "PUT /api/v1/namespaces/$id/finalize", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$id"},"spec":{"finalizers":[]}}`, 403},
		{"the finalizers of a namespace by an update", "owner", "PATCH /api/v1/namespaces/$id", `{"spec":{"finalizers":[]}}`, 0},
		{"the status of a namespace", "owner", "PATCH /api/v1/namespaces/$id/status", `{"status":{"phase":"Terminating"}}`, 403},
		{"the status of a namespace by an update", "owner", "PATCH /api/v1/namespaces/$id", `{"status":{"phase":"Terminating"}}`, 0},
		{"a configuration of webhooks", "editor", "POST /apis/$admission/v1/mutatingwebhookconfigurations",
			`{"apiVersion":"$admission/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"$id"}}`, 403},
		{"a role by whoever may edit", "editor", "POST /apis/$rbac/v1/namespaces/$id/roles", `{"apiVersion":"$rbac/v1","kind":"Role","metadata":{"name":"a"},"rules":[]}`, 403},
		{"another namespace by the body", "editor", "POST /api/v1/namespaces/$id/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"$system"}}`, 400},
		{"another kind by the body", "editor", "POST /api/v1/namespaces/$id/configmaps", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}`, 400},
	})
	object := s.object("/api/v1/namespaces/$id")
	if finalizers := fmt.Sprint(object["spec"]); !strings.Contains(finalizers, c.Vocabulary.NamespaceFinalizer) || fmt.Sprint(object["status"]) != "map[phase:Active]" {
		t.Errorf("the namespace has the spec %v and the status %v", object["spec"], object["status"])
	}
	lockout(s)
}

// lockout: a webhook that refuses everything does not refuse its own removal.
func lockout(s *stage) {
	const path = "/apis/$admission/v1/validatingwebhookconfigurations"
	s.do(s.admin, "POST "+path, `{"apiVersion":"$admission/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"$id","labels":{"lock":"$id"}},"webhooks":[{
		"name":"lock.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","timeoutSeconds":1,
		"clientConfig":{"url":"https://127.0.0.1:1/"},"objectSelector":{"matchLabels":{"lock":"$id"}},
		"rules":[{"operations":["*"],"apiGroups":["*"],"apiVersions":["*"],"resources":["*/*"]}]}]}`, 0)
	s.Cleanup(func() { s.remove(path + "/$id") })
	s.await("the webhook is asked", func() bool {
		return s.admin.Ask(s.T, cluster.Request{Method: "POST", Path: s.names.Replace("/api/v1/namespaces/$id/configmaps?dryRun=All"),
			Body: s.names.Replace(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"lock":"$id"}}}`)}).Code == 500
	})
	s.do(s.admin, "PATCH "+path+"/$id", `{"metadata":{"annotations":{"a":"b"}}}`, 0)
	s.do(s.admin, "DELETE "+path+"/$id", "", 0)
}
