package csrsigner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/csr-signer/internal/profile"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/revocation"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestApprovedRequestsAreSigned(t *testing.T) {
	for _, c := range []struct {
		name, signer, condition string
		want, failed            bool
	}{
		{"approved", client, "Approved", true, false},
		{"denied", client, "Denied", false, false},
		{"not approved", client, "", false, false},
		{"of another signer", "example.com/signer", "Approved", false, false},
		{"against the rules of the signer", "platform.io/apiserver-client-nodeagent", "Approved", false, true},
	} {
		object := request(t, c.signer, c.condition)
		s, api := newSigner(t, object)
		requests := api.Resource(requestType)
		if _, err := s.reconcile(t.Context(), object); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got, err := requests.Get(t.Context(), "r", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		encoded, found, _ := unstructured.NestedString(got.Object, "status", "certificate")
		if found != c.want {
			t.Errorf("%s: signed is %v", c.name, found)
		}
		if found {
			wantCertificate(t, encoded)
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		failed := slices.ContainsFunc(conditions, func(each any) bool {
			condition := each.(map[string]any)
			return condition["type"] == "Failed" && condition["status"] == "True" && condition["reason"] == "SignerValidationFailure" && condition["message"] != ""
		})
		if failed != c.failed {
			t.Errorf("%s: conditions %v", c.name, conditions)
		}
		if _, err := s.reconcile(t.Context(), got); err != nil {
			t.Errorf("%s, again: %v", c.name, err)
		}
	}
}

// TestRequestedLifetime: a requester may get a shorter lifetime than the signer's, but not one
// below ten minutes.
func TestRequestedLifetime(t *testing.T) {
	for wanted, want := range map[int64]time.Duration{1: 10 * time.Minute, 1800: 30 * time.Minute, 7200: time.Hour} {
		object := request(t, client, "Approved")
		if err := unstructured.SetNestedField(object.Object, wanted, "spec", "expirationSeconds"); err != nil {
			t.Fatal(err)
		}
		s, api := newSigner(t, object)
		if _, err := s.reconcile(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		certificate := published(t, api)
		if life := certificate.NotAfter.Sub(certificate.NotBefore) - backdate; life != want {
			t.Errorf("%d s wanted: valid for %v, want %v", wanted, life, want)
		}
	}
}

// TestClockOfTheAPI: the validity is that of the clock that counts, not of this machine's: a
// certificate does not outlive its authority if the latter is ahead.
func TestClockOfTheAPI(t *testing.T) {
	s, _ := newSigner(t, request(t, client, "Approved"))
	a := s.authority
	behind := time.Now().Add(-48 * time.Hour)
	a.now = func() time.Time { return behind }
	for what, c := range map[string]struct {
		lifetime time.Duration
		end      time.Time
	}{
		"shorter than the authority's": {time.Hour, behind.Add(time.Hour)},
		"longer than the authority's":  {1000 * time.Hour, a.certificate.NotAfter},
	} {
		a.lifetime = c.lifetime
		template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "jane"}, PublicKey: newKey(t).Public()}
		got, err := a.issue(template, &x509.CertificateRequest{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if begin := behind.Add(-backdate); !got.NotBefore.Equal(begin.UTC().Truncate(time.Second)) || !got.NotAfter.Equal(c.end.UTC().Truncate(time.Second)) {
			t.Errorf("%s: valid from %v to %v, want %v to %v", what, got.NotBefore, got.NotAfter, begin, c.end)
		}
	}
}

func wantCertificate(t *testing.T, encoded string) {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		t.Fatalf("not one PEM block: %s", text)
	}
	got, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got.Subject.CommonName != "jane" || got.IsCA || len(got.ExtKeyUsage) != 1 || got.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth ||
		got.KeyUsage != x509.KeyUsageDigitalSignature || len(got.DNSNames) != 1 {
		t.Errorf("got %+v", got)
	}
	if life := time.Until(got.NotAfter); life > time.Hour || life < 50*time.Minute {
		t.Errorf("valid for %v", life)
	}
}

func TestOldRequestsAreDeleted(t *testing.T) {
	object := request(t, client, "")
	s, api := newSigner(t, object)
	requests := api.Resource(requestType)
	now := s.clock.(*clock.FakeClock)
	if left, err := s.reconcile(t.Context(), object); err != nil || left != keepFor {
		t.Fatalf("wait %v, %v", left, err)
	}
	now.Step(keepFor)
	if left, err := s.reconcile(t.Context(), object); err != nil || left != 0 {
		t.Fatalf("wait %v, %v", left, err)
	}
	if _, err := requests.Get(t.Context(), "r", metav1.GetOptions{}); err == nil {
		t.Error("it is still there")
	}
}

// TestFailingRequestsAreDeleted: a request that cannot be approved or signed is deleted when it is
// old, like any other, and leaves no record.
func TestFailingRequestsAreDeleted(t *testing.T) {
	fails := func(code int) clienttesting.ReactionFunc {
		return func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, true)
		}
	}
	for name, x := range map[string]struct {
		condition string
		breaks    func(*signer, *fake.FakeDynamicClient)
	}{
		"the authority has expired": {"Approved", func(s *signer, _ *fake.FakeDynamicClient) {
			s.authority.now = func() time.Time { return s.authority.certificate.NotAfter }
		}},
		"certificates are refused": {"Approved", func(_ *signer, api *fake.FakeDynamicClient) {
			api.PrependReactor("update", "certificatesigningrequests", fails(http.StatusForbidden))
		}},
		"a webhook is down": {"Approved", func(_ *signer, api *fake.FakeDynamicClient) {
			api.PrependReactor("update", "certificatesigningrequests", fails(http.StatusInternalServerError))
		}},
		"records are refused": {"Approved", func(_ *signer, api *fake.FakeDynamicClient) {
			api.PrependReactor("create", "issuedcertificates", fails(http.StatusForbidden))
		}},
		"permissions are unknown": {"", func(s *signer, api *fake.FakeDynamicClient) {
			s.approver = &approver{requests: s.requests, reviews: api.Resource(reviewType), profile: s.profiles[client], signer: client,
				vocabulary: vocabulary.Platform(), denied: newDenials(s.clock), log: s.log}
			api.PrependReactor("create", reviewType.Resource, fails(http.StatusInternalServerError))
		}},
	} {
		object := request(t, client, x.condition)
		s, api := newSigner(t, object)
		x.breaks(s, api)
		if _, err := s.reconcile(t.Context(), object); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := api.Resource(requestType).Get(t.Context(), "r", metav1.GetOptions{}); err != nil {
			t.Errorf("%s: at first %v", name, err)
		}
		s.clock.(*clock.FakeClock).Step(keepFor)
		_, _ = s.reconcile(t.Context(), object)
		if _, err := api.Resource(requestType).Get(t.Context(), "r", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: it is still there, %v", name, err)
		}
		if left := recorded(t, api); len(left) > 0 {
			t.Errorf("%s: records are left: %v", name, left)
		}
	}
}

// recorded returns the serial numbers of the recorded certificates.
func recorded(t *testing.T, api *fake.FakeDynamicClient) (serials []string) {
	t.Helper()
	all, err := api.Resource(recordType).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range all.Items {
		serials = append(serials, each.GetName())
	}
	return serials
}

// TestRetriesLeaveOneRecord: a certificate that was certainly not published has no record. One that
// may have been is published by the next attempt, and keeps its record even if that is refused.
func TestRetriesLeaveOneRecord(t *testing.T) {
	object := request(t, client, "Approved")
	s, api := newSigner(t, object)
	code := http.StatusForbidden
	api.PrependReactor("update", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		if code == 0 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, true)
	})
	attempt := func() {
		if _, err := s.reconcile(t.Context(), object); (err != nil) != (code != 0 && code != http.StatusConflict) {
			t.Errorf("with %d: %v", code, err)
		}
	}
	for _, code = range []int{http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusConflict} {
		if attempt(); len(recorded(t, api)) > 0 {
			t.Errorf("with %d there is a record", code)
		}
	}
	code = http.StatusInternalServerError
	attempt()
	first := recorded(t, api)
	for _, code = range []int{http.StatusInternalServerError, http.StatusForbidden, http.StatusConflict, 0} {
		if attempt(); len(first) != 1 || !slices.Equal(recorded(t, api), first) {
			t.Errorf("with %d: records %v, at first %v", code, recorded(t, api), first)
		}
	}
	if certificate := published(t, api); certificate.SerialNumber.Text(16) != first[0] {
		t.Errorf("published %v, recorded %v", certificate.SerialNumber, first)
	}
}

// published returns the certificate in the status of the request "r".
func published(t *testing.T, api *fake.FakeDynamicClient) *x509.Certificate {
	t.Helper()
	got, err := api.Resource(requestType).Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(got.Object, "status", "certificate")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// client is the signer of client certificates.
var client = vocabulary.Platform().Signers.Client

var (
	requestType    = schema.GroupVersionResource{Group: vocabulary.Platform().Group("certificates."), Version: "v1", Resource: "certificatesigningrequests"}
	recordType     = schema.GroupVersionResource{Group: revocation.Group, Version: revocation.Version, Resource: revocation.CertificateResource}
	reviewType     = schema.GroupVersionResource{Group: vocabulary.Platform().Group("authorization."), Version: "v1", Resource: "subjectaccessreviews"}
	revocationType = schema.GroupVersionResource{Group: revocation.Group, Version: revocation.Version, Resource: revocation.Resource}
)

// newSigner returns a signer that has read its records, and a client of an API with some
// requests.
func newSigner(t testing.TB, requests ...*unstructured.Unstructured) (*signer, *fake.FakeDynamicClient) {
	t.Helper()
	certFile, keyFile := authorityFiles(t)
	ca, err := newAuthority(certFile, keyFile, time.Hour, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, r := range requests {
		objects = append(objects, r)
	}
	api := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		requestType: "CertificateSigningRequestList", recordType: "IssuedCertificateList", revocationType: "RevocationList"}, objects...)
	now, log := clock.NewFakeClock(requests[0].GetCreationTimestamp().Time), slog.New(slog.DiscardHandler)
	kept, err := newRecords(api.Resource(recordType), 0, now, log)
	if err != nil {
		t.Fatal(err)
	}
	follow(t, kept.informer)
	return &signer{requests: api.Resource(requestType), profiles: profile.BuiltIn(vocabulary.Platform(), release.V121), authority: ca, records: kept, cleans: true,
		clock: now, log: log}, api
}

// follow runs an informer and waits until it has synced.
func follow(t testing.TB, informer cache.SharedIndexInformer) {
	t.Helper()
	go informer.RunWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
}

// request returns a stored request of jane, with a condition unless that is empty.
func request(t testing.TB, signer, condition string) *unstructured.Unstructured {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "jane"}, DNSNames: []string{"jane.example.com"}}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	var conditions []any
	if condition != "" {
		conditions = append(conditions, map[string]any{"type": condition, "status": "True"})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": vocabulary.Platform().Group("certificates.") + "/v1", "kind": "CertificateSigningRequest",
		"metadata": map[string]any{"name": "r", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
		"spec": map[string]any{"username": "bob", "request": base64.StdEncoding.EncodeToString(text), "signerName": signer,
			"usages": []any{"client auth", "digital signature"}},
		"status": map[string]any{"conditions": conditions},
	}}
}

func authorityFiles(t testing.TB) (certFile, keyFile string) {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "crt"), filepath.Join(t.TempDir(), "key")
	for path, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
