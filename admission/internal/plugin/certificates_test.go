package plugin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
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
