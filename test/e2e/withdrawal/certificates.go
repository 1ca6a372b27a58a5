package withdrawal

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/portico-platform/portico/internal/tools"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// certificates lists and revokes a client certificate whose request is gone: it is refused, the
// watches of its user end, and what csr-signer publishes says so.
func (s *scene) certificates(t *testing.T, publisher string) {
	s.grant(t, "certified", "User", "certified")
	pair := s.certificate(t, "certified")
	watches := s.watchesOf(t, nil, func(door cluster.Cluster) *cluster.Cluster { return door.WithCertificate(pair) })
	s.must(t, "DELETE", s.requests()+"/certified", "")
	authority, serial := s.signingAuthority(t), pair.Leaf.SerialNumber.Text(16)
	if got := status(t, publisher, pair.Leaf, authority); got != ocsp.Good {
		t.Errorf("the status of the certificate is %d", got)
	}
	listed := func() (found []map[string]any) {
		t.Helper()
		var list struct{ Certificates []map[string]any }
		if err := json.Unmarshal([]byte(s.tool(t, "list", "--user=certified", "-o", "json")), &list); err != nil {
			t.Fatal(err)
		}
		return list.Certificates
	}
	if got := listed(); len(got) != 1 || got[0]["serial"] != serial || got[0]["revoked"] != false || got[0]["signerName"] != s.doors[0].Vocabulary.Signers.Client {
		t.Fatalf("certs list: %v", got)
	}
	s.tool(t, "revoke", serial, "--reason=lost")
	began := time.Now()
	s.ends(t, "the certificate", watches, http.StatusUnauthorized)
	for _, door := range s.doors {
		if got := door.WithCertificate(pair).Ask(t, cluster.Request{Path: s.in("configmaps")}); got.Code != http.StatusUnauthorized {
			t.Errorf("the certificate is answered with %d", got.Code)
		}
	}
	for status(t, publisher, pair.Leaf, authority) != ocsp.Revoked || !isListed(t, publisher, pair.Leaf, authority) {
		if time.Since(began) > patience {
			t.Fatalf("not published after %v", patience)
		}
	}
	t.Logf("published after %v", time.Since(began))
	if got := listed(); len(got) != 1 || got[0]["revoked"] != true || got[0]["reason"] != "lost" {
		t.Errorf("certs list: %v", got)
	}
	s.signerRights(t, serial)
}

// signerRights: csr-signer records what it issues and reads what is revoked, and no more.
func (s *scene) signerRights(t *testing.T, serial string) {
	const path = "/apis/access.portico.dev/v1/"
	as := http.Header{"Impersonate-User": {"system:portico:csr-signer"}}
	for _, r := range []cluster.Request{
		{Method: "POST", Path: path + "revocations", Body: `{"metadata":{"name":"r"},"spec":{"user":"jane","reason":"none"}}`},
		{Method: "DELETE", Path: path + "revocations/certificate-" + serial},
		{Method: "PATCH", Path: path + "issuedcertificates/" + serial, Body: `{"metadata":{"labels":{"a":"b"}}}`, Type: "application/merge-patch+json"},
	} {
		r.Header = as
		if got := s.doors[0].Ask(t, r); got.Code != http.StatusForbidden {
			t.Errorf("%s %s as csr-signer: %d", r.Method, r.Path, got.Code)
		}
	}
	// Nor can an administrator rewrite a record by mistake.
	got := s.doors[0].Ask(t, cluster.Request{Method: "PATCH", Path: path + "issuedcertificates/" + serial, Body: `{"spec":{"requester":"nobody"}}`, Type: "application/merge-patch+json"})
	if got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "immutable") {
		t.Errorf("a change of a record: %d %s", got.Code, got.Body)
	}
}

// tool runs portico certs as an administrator and returns its output.
func (s *scene) tool(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	args = append([]string{"--kubeconfig=" + filepath.Join(s.doors[0].Dir, "kubeconfig"), "certs"}, args...)
	if code := tools.Main(t.Context(), args, &out, &errs); code != 0 {
		t.Fatalf("%q: %d %s", args, code, errs.String())
	}
	return out.String()
}

func (s *scene) requests() string {
	return "/apis/" + s.doors[0].Vocabulary.Group("certificates.") + "/v1/certificatesigningrequests"
}

// certificate returns a client certificate that csr-signer has issued, and its key.
func (s *scene) certificate(t *testing.T, user string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user}}, key)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
	s.must(t, "POST", s.requests(), fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"request":%q,"signerName":%q,"usages":["client auth"]}}`,
		user, text, s.doors[0].Vocabulary.Signers.Client))
	s.must(t, "PATCH", s.requests()+"/"+user+"/approval", `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test","message":"by a test"}]}}`)
	var request struct{ Status struct{ Certificate []byte } }
	for began := time.Now(); len(request.Status.Certificate) == 0; {
		if time.Since(began) > patience {
			t.Fatal("the request is not signed")
		}
		s.must(t, "GET", s.requests()+"/"+user, "").Decode(t, &request)
	}
	block, _ := pem.Decode(request.Status.Certificate)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}
}

func (s *scene) signingAuthority(t *testing.T) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.doors[0].Dir, "pki", "signing-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// published returns what csr-signer answers anybody, over plain HTTP.
func published(ctx context.Context, t *testing.T, method, url string, body []byte) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v", url, response.Status, err)
	}
	return content
}

// status returns the status of a certificate in an OCSP response.
func status(t *testing.T, publisher string, leaf, authority *x509.Certificate) int {
	t.Helper()
	question, err := ocsp.CreateRequest(leaf, authority, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := ocsp.ParseResponseForCert(published(t.Context(), t, http.MethodPost, "http://"+publisher+"/ocsp", question), leaf, authority)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status
}

// isListed reports whether a certificate is on the revocation list.
func isListed(t *testing.T, publisher string, leaf, authority *x509.Certificate) bool {
	t.Helper()
	list, err := x509.ParseRevocationList(published(t.Context(), t, http.MethodGet, "http://"+publisher+"/crl", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := list.CheckSignatureFrom(authority); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(list.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool { return e.SerialNumber.Cmp(leaf.SerialNumber) == 0 })
}
