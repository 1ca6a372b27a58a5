package responder

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/portico-platform/portico/services/revocation"
)

// The paths, which certificates name.
const (
	ListPath   = "/crl"
	StatusPath = "/ocsp"
)

const (
	// maxRequest bounds an OCSP request, in bytes.
	maxRequest = 4096
	// maxStatuses bounds the responses that are kept of one edition.
	maxStatuses = 20_000
)

// edition is what is served until the next one: the list, and the responses that were signed.
type edition struct {
	asOf, until time.Time
	number      int64 // of the list
	set         *revocation.Set
	revoked     map[string]entry // by serial number
	list        []byte           // nil if the authority cannot sign lists
	tag         string           // the entity tag of the list

	mu       sync.Mutex
	statuses map[statusKey][]byte
}

// statusKey identifies a response: clients choose how they name the authority.
type statusKey struct {
	serial string
	hash   crypto.Hash
}

// ServeHTTP implements http.Handler.
func (r *Responder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	path := q.URL.EscapedPath()
	encoded, get := strings.CutPrefix(path, StatusPath+"/")
	switch reads := q.Method == http.MethodGet || q.Method == http.MethodHead; {
	case path == ListPath && reads:
		r.serveList(w, q)
	case path == StatusPath && q.Method == http.MethodPost:
		raw, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxRequest))
		r.serveStatus(w, q, raw, err == nil)
	case get && reads:
		raw, ok := unpack(encoded)
		r.serveStatus(w, q, raw, ok)
	case path == ListPath || path == StatusPath || get:
		w.WriteHeader(http.StatusMethodNotAllowed)
	default:
		http.NotFound(w, q)
	}
}

// unpack decodes the request in a path: base64, of which clients escape some characters.
func unpack(encoded string) ([]byte, bool) {
	if len(encoded) > 3*base64.StdEncoding.EncodedLen(maxRequest) {
		return nil, false
	}
	plain, err := url.PathUnescape(encoded)
	if err != nil {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(plain)
	return raw, err == nil && len(raw) <= maxRequest
}

// serveList answers with the list, 404 if the authority cannot sign lists, and 503 while nothing
// valid is known.
func (r *Responder) serveList(w http.ResponseWriter, q *http.Request) {
	e := r.valid(r.Clock.Now())
	switch {
	case e == nil:
		r.count("crl", "unavailable")
		w.Header().Set("Retry-After", "10")
		http.Error(w, "the state of certificates is not known", http.StatusServiceUnavailable)
	case e.list == nil:
		r.count("crl", "not-served")
		http.NotFound(w, q)
	default:
		r.count("crl", "ok")
		w.Header().Set("Content-Type", "application/pkix-crl")
		r.serve(w, q, document{e.list, e.tag, e.asOf, e.until})
	}
}

// serveStatus answers a request for the status of a certificate. All answers have status 200, as
// RFC 6960 has it.
func (r *Responder) serveStatus(w http.ResponseWriter, q *http.Request, raw []byte, complete bool) {
	w.Header().Set("Content-Type", "application/ocsp-response")
	now := r.Clock.Now()
	refuse := func(result string, answer []byte) {
		r.count("ocsp", result)
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(answer) // the client may be gone
	}
	request, err := ocsp.ParseRequest(raw)
	if !complete || err != nil {
		refuse("malformed", ocsp.MalformedRequestErrorResponse)
		return
	}
	e := r.valid(now)
	switch {
	case e == nil:
		refuse("unavailable", ocsp.TryLaterErrorResponse)
		return
	case !issuedBy(r.Authority.Certificate(), request):
		refuse("unauthorized", ocsp.UnauthorizedErrorResponse)
		return
	}
	status, known, err := r.status(e, request, now)
	switch {
	case err != nil:
		r.Log.Warn("no OCSP response", "error", err)
		refuse("failed", ocsp.InternalErrorErrorResponse)
	case !known: // without a signature: there are numbers without end (RFC 5019 section 2.2.3)
		refuse("unauthorized", ocsp.UnauthorizedErrorResponse)
	case status == nil:
		refuse("limited", ocsp.TryLaterErrorResponse)
	default:
		r.count("ocsp", "ok")
		r.serve(w, q, document{status, tagOf(status), e.asOf, e.until})
	}
}

// document is a list or a response, with its entity tag.
type document struct {
	content     []byte
	tag         string
	asOf, until time.Time
}

// serve answers with a document, which caches may keep for half of its remaining life.
func (r *Responder) serve(w http.ResponseWriter, q *http.Request, d document) {
	h, now := w.Header(), r.Clock.Now()
	h.Set("ETag", d.tag)
	age := d.until.Sub(now) / 2
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d, public, no-transform, must-revalidate", int(age.Seconds())))
	h.Set("Expires", now.Add(age).UTC().Format(http.TimeFormat))
	if q.Method == http.MethodPost {
		_, _ = w.Write(d.content)
		return
	}
	http.ServeContent(w, q, "", d.asOf, bytes.NewReader(d.content))
}

// status returns the response for a certificate of the authority: false if nothing is known of
// it, and nil if too many are signed.
func (r *Responder) status(e *edition, request *ocsp.Request, now time.Time) ([]byte, bool, error) {
	revoked, known := e.of(r.Source, request.SerialNumber, now)
	if !known {
		return nil, false, nil
	}
	key := statusKey{request.SerialNumber.Text(16), request.HashAlgorithm}
	e.mu.Lock()
	defer e.mu.Unlock()
	if status := e.statuses[key]; status != nil {
		return status, true, nil
	}
	if !r.signing.AllowN(now, 1) {
		return nil, true, nil
	}
	answer := ocsp.Response{Status: ocsp.Good, SerialNumber: request.SerialNumber, IssuerHash: request.HashAlgorithm, ThisUpdate: e.asOf, NextUpdate: e.until}
	if revoked.number != nil {
		answer.Status, answer.RevokedAt, answer.RevocationReason = ocsp.Revoked, revoked.since, revoked.reason
	}
	status, err := r.Authority.SignStatus(answer)
	if err == nil && len(e.statuses) < maxStatuses {
		e.statuses[key] = status
	}
	return status, true, err
}

// issuedBy reports whether a request is about a certificate of the authority. There is no need
// to compare in constant time: what is compared is public.
func issuedBy(authority *x509.Certificate, request *ocsp.Request) bool {
	var key struct {
		Algorithm asn1.RawValue
		Bits      asn1.BitString
	}
	if !request.HashAlgorithm.Available() {
		return false
	}
	if _, err := asn1.Unmarshal(authority.RawSubjectPublicKeyInfo, &key); err != nil {
		return false
	}
	return bytes.Equal(digest(request.HashAlgorithm, authority.RawSubject), request.IssuerNameHash) &&
		bytes.Equal(digest(request.HashAlgorithm, key.Bits.RightAlign()), request.IssuerKeyHash)
}

func tagOf(document []byte) string {
	return fmt.Sprintf("%q", hex.EncodeToString(digest(crypto.SHA256, document)))
}

func digest(hash crypto.Hash, content []byte) []byte {
	h := hash.New()
	_, _ = h.Write(content) // never fails
	return h.Sum(nil)
}

func (r *Responder) count(document, result string) {
	r.requests.WithLabelValues(document, result).Inc()
}
