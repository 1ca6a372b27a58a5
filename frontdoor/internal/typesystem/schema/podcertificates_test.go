package schema

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
)

// podKey is a key with the base64 of a request for it, its public key and a signature of a UID.
type podKey struct {
	crypto.Signer
	request, public, proof string
}

func newPodKey(t *testing.T, curve elliptic.Curve) podKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, requestError := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	public, publicError := x509.MarshalPKIXPublicKey(key.Public())
	hash := sha256.Sum256([]byte("uid"))
	proof, proofError := ecdsa.SignASN1(rand.Reader, key, hash[:])
	if err := errors.Join(requestError, publicError, proofError); err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString
	return podKey{key, text(request), text(public), text(proof)}
}

// certificate returns a certificate for a key in PEM, as a YAML string.
func (k podKey) certificate(t *testing.T, start time.Time, lifetime time.Duration) string {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: start, NotAfter: start.Add(lifetime)}
	_, issuer, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), issuer)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%q", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestPodCertificateRequests checks which requests for certificates of pods are accepted, and
// which answers.
func TestPodCertificateRequests(t *testing.T) {
	types, engine := newEngineOf(t, release.V136)
	ty, ok := types.Lookup(engine.vocabulary.Group("certificates."), "v1beta1", "podcertificaterequests")
	if !ok {
		t.Fatal("not served")
	}
	key, other, weak := newPodKey(t, elliptic.P256()), newPodKey(t, elliptic.P256()), newPodKey(t, elliptic.P224())
	spec := func(fields string) string {
		return `signerName: example.com/x, podName: a, podUID: uid, serviceAccountName: a, serviceAccountUID: b, nodeName: n1, nodeUID: c, ` + fields
	}
	start := time.Now().Truncate(time.Second).UTC()
	times := func(begin, refresh, end time.Time) string {
		return fmt.Sprintf("notBefore: %q, beginRefreshAt: %q, notAfter: %q", begin.Format(time.RFC3339), refresh.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	condition := func(kind string) string {
		return `conditions: [{type: ` + kind + `, status: "True", reason: A, lastTransitionTime: "2026-01-02T03:04:05Z"}], `
	}
	day := start.Add(24 * time.Hour)
	good := condition("Issued") + "certificateChain: " + key.certificate(t, start, 24*time.Hour) + ", " + times(start, start.Add(time.Hour), day)
	stub := spec(`stubPKCS10Request: ` + key.request)
	for name, c := range map[string]struct{ spec, before, after, want string }{
		"request":       {stub, "", "", ""},
		"key":           {spec(`pkixPublicKey: ` + key.public + `, proofOfPossession: ` + key.proof), "", "", ""},
		"both":          {spec(`stubPKCS10Request: ` + key.request + `, pkixPublicKey: ` + key.public), "", "", "spec: Invalid value: \"<value omitted>\": exactly one of"},
		"none":          {spec(`podUID: uid`), "", "", "spec: Invalid value: \"<value omitted>\": exactly one of"},
		"other's proof": {spec(`pkixPublicKey: ` + key.public + `, proofOfPossession: ` + other.proof), "", "", "spec.proofOfPossession: Invalid value: \"<value omitted>\": could not verify"},
		"weak":          {spec(`pkixPublicKey: ` + weak.public + `, proofOfPossession: ` + weak.proof), "", "", "spec.pkixPublicKey: Invalid value: \"<value omitted>\": elliptic public keys must use curve"},
		"no request":    {spec(`stubPKCS10Request: ` + key.public), "", "", "spec.stubPKCS10Request: Invalid value: \"<value omitted>\": must be a valid PKCS#10 CSR"},
		"short":         {spec(`maxExpirationSeconds: 60, stubPKCS10Request: ` + key.request), "", "", "spec.maxExpirationSeconds: Invalid value: 60: must be in the range [3600, 7862400]"},
		"own signer":    {`signerName: platform.io/x, maxExpirationSeconds: 90000, podName: a, podUID: uid, serviceAccountName: a, serviceAccountUID: b, nodeName: n1, nodeUID: c, stubPKCS10Request: ` + key.request, "", "", "spec.maxExpirationSeconds: Invalid value: 90000: must be in the range [3600, 86400]"},
		"issued":        {stub, "{}", good, ""},
		"denied":        {stub, "{}", condition("Denied"), ""},
		"denied twice":  {stub, condition("Denied"), condition("Failed"), "status: Invalid value: \"<value omitted>\": immutable after"},
		"issued, then":  {stub, good, condition("Denied"), "status: Invalid value: \"<value omitted>\": immutable after"},
		"half":          {stub, "{}", condition("Denied") + times(start, start, day), "status: Invalid value: \"<value omitted>\": non-condition status fields must be empty"},
		"no condition":  {stub, "{}", times(start, start, day), "status: Invalid value: \"<value omitted>\": status is immutable unless"},
		"unknown":       {stub, "{}", condition("Ready"), "status.conditions[0].type: Unsupported value: \"Ready\""},
		"other key":     {stub, "{}", condition("Issued") + "certificateChain: " + other.certificate(t, start, 24*time.Hour), "status.certificateChain: Invalid value: \"<value omitted>\": leaf certificate was not issued to the requested public key"},
		"no chain":      {stub, "{}", condition("Issued") + "certificateChain: none", "status.certificateChain: Invalid value: \"<value omitted>\": issued certificate chain must contain at least one certificate"},
		"too long":      {stub, "{}", condition("Issued") + "certificateChain: " + key.certificate(t, start, 25*time.Hour) + ", " + times(start, start.Add(time.Hour), start.Add(25*time.Hour)), "status.certificateChain: Invalid value: \"<value omitted>\": leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)"},
		"old":           {stub, "{}", condition("Issued") + "certificateChain: " + key.certificate(t, start.Add(-time.Hour), 24*time.Hour) + ", " + times(start.Add(-time.Hour), start, start.Add(23*time.Hour)), "status.notBefore: Invalid value"},
		"other times":   {stub, "{}", condition("Issued") + "certificateChain: " + key.certificate(t, start, 24*time.Hour) + ", " + times(start, start, day.Add(time.Hour)), "status.beginRefreshAt: Invalid value\nstatus.notAfter: Invalid value"},
		"no times":      {stub, "{}", condition("Issued") + "certificateChain: " + key.certificate(t, start, 24*time.Hour), "status.beginRefreshAt: Required value\nstatus.notAfter: Required value\nstatus.notBefore: Required value"},
	} {
		prepared := func(status string) map[string]any {
			object := decode(t, `{metadata: {name: a, namespace: b, resourceVersion: "1"}, spec: {`+c.spec+`}}`)
			if status != "" && status != "{}" {
				object["status"] = decode(t, "{"+status+"}")
			}
			if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return object
		}
		change := Change{Type: ty, Object: prepared(c.after)}
		if c.before != "" {
			change.Subresource, change.Old = "status", prepared(c.before)
		}
		causes := ""
		var s *services.Status
		if errors.As(engine.ValidateChange(t.Context(), change), &s) {
			for _, cause := range s.Details.Causes {
				causes += cause.Field + ": " + cause.Message + "\n"
			}
		}
		if c.want == "" && causes != "" || c.want != "" && !sameLines(causes, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, causes, c.want)
		}
	}
}
