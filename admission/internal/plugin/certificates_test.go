package plugin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"slices"
	"testing"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// TestSubjectsOfClientCertificates: no request is for the group of administrators, also not with white
// space around it, which servers that get groups in headers remove.
func TestSubjectsOfClientCertificates(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := certificates{group: "certificates.k8s.io", clientSigner: "kubernetes.io/kube-apiserver-client"}
	for organization, allowed := range map[string]bool{
		"system:masters": false, "system:masters ": false, " system:masters": false, "\tsystem:masters\n": false, "system:masters2": true, "developers": true,
	} {
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "jane", Organization: []string{"a", organization}}}, key)
		if err != nil {
			t.Fatal(err)
		}
		object, err := json.Marshal(map[string]any{"spec": map[string]any{"signerName": p.clientSigner,
			"request": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}})
		if err != nil {
			t.Fatal(err)
		}
		r := review.New(services.AdmissionRequest{Operation: services.OperationCreate, Group: p.group, Version: "v1", Resource: "certificatesigningrequests", Object: object})
		if err := p.subject(t.Context(), r); allowed && err != nil || !allowed && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%q: %v", organization, err)
		}
	}
}

// signers is an authz that lets users attest for some signers.
type signers struct {
	services.Authz
	may []string
}

func (s signers) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: a.Verb == "attest" && a.Group == "certificates.k8s.io" && a.Resource == "signers" && slices.Contains(s.may, a.Name)}, nil
}

// TestAttesting: who says which certificates are those of a signer needs the verb attest on it, or on all
// signers of its domain.
func TestAttesting(t *testing.T) {
	bundle := func(signer, more string) string {
		return `{"metadata":{"name":"b"` + more + `},"spec":{"signerName":"` + signer + `","trustBundle":"x"}}`
	}
	const one = "example.com/one"
	for name, x := range map[string]struct {
		old, object string
		may         []string
		allowed     bool
	}{
		"by nobody":                    {object: bundle(one, "")},
		"by the name":                  {object: bundle(one, ""), may: []string{one}, allowed: true},
		"by the domain":                {object: bundle(one, ""), may: []string{"example.com/*"}, allowed: true},
		"another signer":               {object: bundle(one, ""), may: []string{"example.com/two", "example.org/*"}},
		"no signer":                    {object: bundle("", ""), allowed: true},
		"a change by nobody":           {old: bundle(one, ""), object: bundle(one, `,"labels":{"a":"b"}`)},
		"a change by the name":         {old: bundle(one, ""), object: bundle(one, `,"labels":{"a":"b"}`), may: []string{one}, allowed: true},
		"a change of no signer":        {old: bundle("", ""), object: bundle("", `,"labels":{"a":"b"}`), allowed: true},
		"another signer afterwards":    {old: bundle("", ""), object: bundle(one, ""), may: []string{one}},
		"no signer afterwards":         {old: bundle(one, ""), object: bundle("", ""), may: []string{one}},
		"what the collector may write": {old: bundle(one, ""), object: bundle(one, `,"finalizers":["a/b"]`), allowed: true},
	} {
		r := services.AdmissionRequest{Operation: services.OperationCreate, Group: "certificates.k8s.io", Version: "v1beta1", Resource: "clustertrustbundles", Name: "b", Object: []byte(x.object)}
		if x.old != "" {
			r.Operation, r.OldObject = services.OperationUpdate, []byte(x.old)
		}
		p := certificates{authz: signers{may: x.may}, group: r.Group}
		if err := p.attesting(t.Context(), review.New(r)); x.allowed && err != nil || !x.allowed && !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
