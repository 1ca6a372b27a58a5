package csrsigner

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ocsp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic/fake"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/csr-signer/internal/responder"
	"github.com/portico-platform/portico/services/revocation"
)

// scene is a signer with an issued certificate of jane, and the responder that anybody may ask.
type scene struct {
	*signer
	api     *fake.FakeDynamicClient
	issued  *x509.Certificate
	now     *clock.FakeClock
	signed  *atomic.Int32 // responses
	handler http.Handler
	url     string
	metrics *prometheus.Registry
}

// counted counts the responses that the authority signs.
type counted struct {
	*authority
	statuses atomic.Int32
}

func (c *counted) SignStatus(status ocsp.Response) ([]byte, error) {
	c.statuses.Add(1)
	return c.authority.SignStatus(status)
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s, api := newSigner(t, request(t, client, "Approved"))
	s.authority.lists, s.authority.responders = []string{"http://pki.example.com/crl"}, []string{"http://pki.example.com/ocsp"}
	known, err := newRevocations(api.Resource(revocationType), s.records, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	follow(t, known.informer)
	now, signs := clock.NewFakeClock(time.Now()), &counted{authority: s.authority}
	metrics := prometheus.NewRegistry()
	answers := &responder.Responder{Authority: signs, Source: known, Validity: time.Hour, Clock: now, Log: slog.New(slog.DiscardHandler)}
	if err := answers.Init(metrics); err != nil {
		t.Fatal(err)
	}
	go func() { _ = answers.Run(t.Context()) }()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	made := &scene{signer: s, api: api, now: now, signed: &signs.statuses, handler: answers, url: server.URL, metrics: metrics}
	made.issued = made.sign(t, "r")
	return made
}

// sign signs a stored request and waits until its record is known.
func (s *scene) sign(t testing.TB, name string) *x509.Certificate {
	t.Helper()
	object, err := s.api.Resource(requestType).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if object, err = s.api.Resource(requestType).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	encoded, _, _ := unstructured.NestedString(object.Object, "status", "certificate")
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	got, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the record is known", func() bool {
		_, ok := s.records.Certificate(got.SerialNumber.Text(16))
		return ok
	})
	return got
}

// until waits for a condition.
func until(t testing.TB, what string, met func() bool) {
	t.Helper()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	const patience = 30 * time.Second
	for deadline := time.Now().Add(patience); !met(); <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// revoke makes a Revocation, of which the responder learns, and returns its time.
func (s *scene) revoke(t *testing.T, name string, spec map[string]any) time.Time {
	t.Helper()
	spec["reason"] = "lost"
	now := s.now.Now().UTC().Truncate(time.Second)
	_, err := s.api.Resource(revocationType).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "access.portico.dev/v1", "kind": "Revocation",
		"metadata": map[string]any{"name": name, "creationTimestamp": now.Format(time.RFC3339)}, "spec": spec}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// get returns the body of an answer.
func get(t testing.TB, method, url string, body []byte) (*http.Response, []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	content, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, content
}

// list returns the revocation list, nil while none is served.
func (s *scene) list(t *testing.T) *x509.RevocationList {
	t.Helper()
	a, content := get(t, http.MethodGet, s.url+"/crl", nil)
	if a.StatusCode != http.StatusOK {
		return nil
	}
	list, err := x509.ParseRevocationList(content)
	if err != nil || list.CheckSignatureFrom(s.authority.certificate) != nil || a.Header.Get("Content-Type") != "application/pkix-crl" || a.Header.Get("ETag") == "" {
		t.Fatalf("%v %v", err, a.Header)
	}
	return list
}

// listed waits for a list of some length. The clock moves on: changes come together.
func (s *scene) listed(t *testing.T, length int) (list *x509.RevocationList) {
	t.Helper()
	until(t, fmt.Sprintf("%d certificates are on the list", length), func() bool {
		s.now.Step(100 * time.Millisecond)
		list = s.list(t)
		return list != nil && len(list.RevokedCertificateEntries) == length
	})
	return list
}

// status returns the OCSP response for a certificate.
func (s *scene) status(t *testing.T, c *x509.Certificate, hash crypto.Hash) (*ocsp.Response, error) {
	t.Helper()
	raw, err := ocsp.CreateRequest(c, s.authority.certificate, &ocsp.RequestOptions{Hash: hash})
	if err != nil {
		t.Fatal(err)
	}
	_, posted := get(t, http.MethodPost, s.url+"/ocsp", raw)
	_, got := get(t, http.MethodGet, s.url+"/ocsp/"+url.PathEscape(base64.StdEncoding.EncodeToString(raw)), nil)
	if !bytes.Equal(posted, got) {
		t.Error("POST and GET have different answers")
	}
	return ocsp.ParseResponseForCert(got, c, s.authority.certificate)
}

// TestRevokedCertificates: a certificate is good until a Revocation of its number, key, user or
// group, on the list and in OCSP responses, and good again after it.
func TestRevokedCertificates(t *testing.T) {
	s := newScene(t)
	if got := s.issued; len(got.CRLDistributionPoints) != 1 || got.CRLDistributionPoints[0] != "http://pki.example.com/crl" || len(got.OCSPServer) != 1 {
		t.Errorf("the certificate names %q and %q", got.CRLDistributionPoints, got.OCSPServer)
	}
	record, _ := s.records.Certificate(s.issued.SerialNumber.Text(16))
	if record.CommonName != "jane" || record.Requester != "bob" || record.SignerName != client || record.Request != (revocation.Request{Name: "r", UID: "u"}) ||
		len(record.Names) != 1 || !record.NotAfter.Equal(s.issued.NotAfter) {
		t.Errorf("the record is %+v", record)
	}
	serial := strings.ToUpper(s.issued.SerialNumber.Text(16))
	for name, spec := range map[string]map[string]any{
		"serial": {"serial": "00" + serial},
		"key":    {"keyID": record.KeyID},
		"user":   {"user": "jane"},
		"before": {"user": "jane", "issuedBefore": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)},
		"ends":   {"user": "jane", "until": s.now.Now().Add(30 * time.Minute).UTC().Format(time.RFC3339)},
	} {
		s.listed(t, 0)
		if got, err := s.status(t, s.issued, crypto.SHA1); err != nil || got.Status != ocsp.Good {
			t.Fatalf("%s: at first %+v, %v", name, got, err)
		}
		since := s.revoke(t, name, spec)
		entry := s.listed(t, 1).RevokedCertificateEntries[0]
		wanted := map[bool]int{true: ocsp.CertificateHold}[name == "ends"]
		if entry.SerialNumber.Cmp(s.issued.SerialNumber) != 0 || entry.ReasonCode != wanted || !entry.RevocationTime.Equal(since) {
			t.Errorf("%s: the entry is %+v, want the time %v", name, entry, since)
		}
		for _, hash := range []crypto.Hash{crypto.SHA1, crypto.SHA256} {
			got, err := s.status(t, s.issued, hash)
			if err != nil || got.Status != ocsp.Revoked || got.RevocationReason != wanted || !got.RevokedAt.Equal(entry.RevocationTime) {
				t.Errorf("%s: the status is %+v, %v", name, got, err)
			}
		}
		if err := s.api.Resource(revocationType).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.listed(t, 0)
	s.revoke(t, "another", map[string]any{"user": "joe"})
	s.revoke(t, "over", map[string]any{"user": "jane", "until": s.now.Now().Add(-time.Second).UTC().Format(time.RFC3339)})
	s.revoke(t, "unknown", map[string]any{"serial": "abc"}) // there is no record of it
	if entry := s.listed(t, 1).RevokedCertificateEntries[0]; entry.SerialNumber.Int64() != 0xabc {
		t.Errorf("the entry is %+v", entry)
	}
	if got, err := s.status(t, &x509.Certificate{SerialNumber: big.NewInt(0xabc)}, crypto.SHA1); err != nil || got.Status != ocsp.Revoked {
		t.Errorf("of a certificate without a record: %+v, %v", got, err)
	}
}

// TestResponderIsNotAbused: what is no question, or about no certificate of the authority, gets an
// answer that is not signed, and a question that is repeated is signed once.
func TestResponderIsNotAbused(t *testing.T) {
	s := newScene(t)
	s.listed(t, 0)
	other, _ := newSigner(t, request(t, client, "Approved"))
	ask := func(serial int64, issuer *x509.Certificate) []byte {
		raw, err := ocsp.CreateRequest(&x509.Certificate{SerialNumber: big.NewInt(serial)}, issuer, nil)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	ours, valid := s.authority.certificate, ask(1, s.authority.certificate)
	for _, c := range []struct {
		name, method, path string
		body               []byte
		code               int
		want               []byte
	}{
		{"empty", "POST", "/ocsp", nil, 200, ocsp.MalformedRequestErrorResponse},
		{"text", "POST", "/ocsp", []byte("hello"), 200, ocsp.MalformedRequestErrorResponse},
		{"truncated", "POST", "/ocsp", valid[:len(valid)-1], 200, ocsp.MalformedRequestErrorResponse},
		{"too long", "POST", "/ocsp", append(bytes.Clone(valid), make([]byte, 5000)...), 200, ocsp.MalformedRequestErrorResponse},
		{"no base64", "GET", "/ocsp/%25", nil, 200, ocsp.MalformedRequestErrorResponse},
		{"long path", "GET", "/ocsp/" + strings.Repeat("A", 14_000), nil, 200, ocsp.MalformedRequestErrorResponse},
		{"another authority", "POST", "/ocsp", ask(1, other.authority.certificate), 200, ocsp.UnauthorizedErrorResponse},
		{"unknown number", "POST", "/ocsp", valid, 200, ocsp.UnauthorizedErrorResponse},
		{"negative number", "POST", "/ocsp", ask(-1, ours), 200, ocsp.UnauthorizedErrorResponse},
		{"method", "PUT", "/ocsp", valid, 405, nil},
		{"method of the list", "POST", "/crl", nil, 405, nil},
		{"path", "GET", "/", nil, 404, nil},
		{"dots", "GET", "/crl/../ocsp", nil, 404, nil},
	} {
		a, got := get(t, c.method, s.url+c.path, c.body)
		if a.StatusCode != c.code || c.want != nil && !bytes.Equal(got, c.want) {
			t.Errorf("%s: %d %x", c.name, a.StatusCode, got)
		}
	}
	if n := s.signed.Load(); n != 0 {
		t.Errorf("%d answers were signed", n)
	}
	raw, err := ocsp.CreateRequest(s.issued, ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		get(t, http.MethodPost, s.url+"/ocsp", raw)
	}
	if n := s.signed.Load(); n != 1 {
		t.Errorf("%d answers were signed for the same question", n)
	}
	families, err := s.metrics.Gather()
	if err != nil || len(families) != 1 || families[0].GetName() != "portico_revocation_status_requests_total" || len(families[0].GetMetric()) < 4 {
		t.Errorf("the metrics are %v, %v", families, err)
	}
}

// TestStaleRevocations: nothing is served that is older than it says.
func TestStaleRevocations(t *testing.T) {
	s := newScene(t)
	list := s.listed(t, 0)
	if life := list.NextUpdate.Sub(list.ThisUpdate); life != time.Hour {
		t.Errorf("the list is valid for %v", life)
	}
	s.now.Step(2 * time.Hour) // without a sign of life of the API
	if s.list(t) != nil {
		t.Error("a list is served after its end")
	}
	if _, err := s.status(t, s.issued, crypto.SHA1); err == nil || !strings.Contains(err.Error(), "try later") {
		t.Errorf("the status after the end: %v", err)
	}
}

// TestRecords: the record of a certificate goes when it has expired, or when nobody has got the
// certificate, and their number is bounded.
func TestRecords(t *testing.T) {
	s := newScene(t)
	serial := s.issued.SerialNumber.Text(16)
	record, err := s.api.Resource(recordType).Get(t.Context(), serial, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.records.limit = 1
	second := request(t, client, "Approved")
	second.SetName("second")
	if _, err := s.api.Resource(requestType).Create(t.Context(), second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	again, err := s.reconcile(t.Context(), second)
	if err != nil || again != recheckAfter {
		t.Errorf("beyond the limit: %v, %v", again, err)
	}
	now := s.records.clock.(*clock.FakeClock)
	now.SetTime(s.issued.NotAfter)
	if left, err := s.records.reconcile(t.Context(), record); err != nil || left != keepExpired {
		t.Errorf("at the expiry: %v, %v", left, err)
	}
	now.Step(keepExpired)
	if _, err := s.records.reconcile(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	until(t, "the record is gone", func() bool {
		_, known := s.records.Certificate(serial)
		return !known
	})
	gone := request(t, client, "Approved") // deleted before it is signed
	gone.SetName("gone")
	if _, err := s.reconcile(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	left, err := s.api.Resource(recordType).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("records that are left: %v, %v", left.Items, err)
	}
}

// FuzzStatusRequest: whatever is asked, in a path or a body, is answered, and signed only for the
// certificate that was issued.
func FuzzStatusRequest(f *testing.F) {
	s := newScene(f)
	until(f, "a list is served", func() bool {
		s.now.Step(100 * time.Millisecond)
		a, _ := get(f, http.MethodGet, s.url+"/crl", nil)
		return a.StatusCode == http.StatusOK
	})
	valid, err := ocsp.CreateRequest(s.issued, s.authority.certificate, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(valid)
	f.Add([]byte("%2F%%"))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := "/ocsp/" + base64.StdEncoding.EncodeToString(raw)
		for _, q := range []*http.Request{
			{Method: http.MethodPost, URL: &url.URL{Path: "/ocsp"}, Body: io.NopCloser(bytes.NewReader(raw))},
			{Method: http.MethodGet, URL: &url.URL{Path: path}},
			{Method: http.MethodGet, URL: &url.URL{Path: "/ocsp/" + string(raw)}},
		} {
			w := httptest.NewRecorder()
			s.handler.ServeHTTP(w, q)
			answer, err := ocsp.ParseResponse(w.Body.Bytes(), s.authority.certificate)
			var refused ocsp.ResponseError
			switch {
			case w.Code != http.StatusOK:
				t.Errorf("%s %s: %d", q.Method, q.URL, w.Code)
			case err == nil && answer.SerialNumber.Cmp(s.issued.SerialNumber) != 0 || err != nil && !errors.As(err, &refused):
				t.Errorf("%s %s: %+v, %v", q.Method, q.URL, answer, err)
			}
		}
		if n := s.signed.Load(); n > 4 { // one for each hash
			t.Errorf("%d answers were signed", n)
		}
	})
}
