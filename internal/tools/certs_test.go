package tools

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// certificatesOf lists and revokes certificates whose records somebody else has made.
func certificatesOf(t *testing.T, c tool) {
	t.Helper()
	a, err := (&session{kubeconfig: c.config}).access()
	if err != nil {
		t.Fatal(err)
	}
	version := schema.GroupVersion{Group: "access.portico.dev", Version: "v1"}
	issued, revocations := a.client.Resource(version.WithResource("issuedcertificates")), a.client.Resource(version.WithResource("revocations"))
	now := time.Now()
	at := func(d time.Duration) string { return now.Add(d).UTC().Format(time.RFC3339) }
	for serial, spec := range map[string]map[string]any{
		"a1": {"commonName": "jane", "organizations": []any{"staff"}, "signerName": "kubernetes.io/kube-apiserver-client", "requester": "bob\x1b[2J", "notBefore": at(-time.Hour), "notAfter": at(time.Hour)},
		"b2": {"commonName": "joe", "signerName": "example.com/other", "requester": "bob", "notBefore": at(-2 * time.Hour), "notAfter": at(2 * time.Hour)},
		"c3": {"commonName": "old", "signerName": "example.com/other", "requester": "bob", "notBefore": at(-2 * time.Hour), "notAfter": at(-time.Minute)},
	} {
		spec["serial"] = serial
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "access.portico.dev/v1", "kind": "IssuedCertificate",
			"metadata": map[string]any{"name": serial}, "spec": spec}}
		if _, err := issued.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	group := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "access.portico.dev/v1", "kind": "Revocation",
		"metadata": map[string]any{"name": "group"}, "spec": map[string]any{"group": "staff", "reason": "all left"}}}
	if _, err := revocations.Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []struct {
		line string
		code int
		says []string
		not  string
	}{
		{"certs list", 0, []string{"SERIAL", "a1", "revoked: all left", "b2", "valid"}, "c3"},
		{"certs list --expired --signer=example.com/other", 0, []string{"b2", "c3", "expired"}, "a1"},
		{"certs list --requester=bob", 0, []string{"b2"}, "a1"},
		{"certs revoke B2", 2, []string{"--reason"}, ""},
		{"certs revoke 0x --reason=lost", 1, []string{"not a serial number"}, ""},
		{"certs revoke d4 --reason=lost", 1, []string{"no certificate with the serial number d4 was recorded"}, ""},
		{"certs revoke 00:B2 --reason=lost", 0, []string{"b2 is revoked by Revocation certificate-b2"}, ""},
		{"certs revoke b2 --reason=again", 0, []string{"certificate-b2"}, ""},
		{"certs list --user=joe", 0, []string{"revoked: lost"}, "jane"},
	} {
		r := c.run(strings.Fields(run.line)...)
		text := r.out + r.stderr
		for _, want := range run.says {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", run.line, want, text)
			}
		}
		if r.code != run.code || run.not != "" && strings.Contains(text, run.not) || strings.Contains(text, "\x1b") {
			t.Errorf("%s: %+v", run.line, r)
		}
	}
	made, err := revocations.Get(t.Context(), "certificate-b2", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if until, _, _ := unstructured.NestedString(made.Object, "spec", "until"); until != at(2*time.Hour) {
		t.Errorf("the Revocation ends at %s", until)
	}
	for name, spec := range map[string]map[string]any{
		"e5": {"serial": "e6", "signerName": "s", "notBefore": at(0), "notAfter": at(time.Hour)},
		"f6": {"serial": "F6", "signerName": "s", "notBefore": at(0), "notAfter": at(time.Hour)},
		"f7": {"serial": "f7", "signerName": "s", "notBefore": at(0), "notAfter": at(0)},
		"f8": {"serial": "f8", "notBefore": at(0), "notAfter": at(time.Hour)},
		"f9": {"serial": "f9", "signerName": "s", "commonName": strings.Repeat("a", 1025), "notBefore": at(0), "notAfter": at(time.Hour)},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "access.portico.dev/v1", "kind": "IssuedCertificate",
			"metadata": map[string]any{"name": name}, "spec": spec}}
		if _, err := issued.Create(t.Context(), object, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.") {
			t.Errorf("%s is accepted: %v", name, err)
		}
	}
}
