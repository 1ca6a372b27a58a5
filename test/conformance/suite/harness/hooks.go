package harness

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
)

// serveTLS serves h on a loopback port and returns its https URL.
func serveTLS(h http.Handler, conf *tls.Config) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	s := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go s.Serve(tls.NewListener(l, conf))
	return "https://" + l.Addr().String()
}

// oidcIssuer is an OpenID Connect issuer: discovery and key set.
type oidcIssuer struct {
	URL, ClientID string
	key, stranger *rsa.PrivateKey
	keyID         string
}

func newIssuer(ca *Authority) *oidcIssuer {
	o := &oidcIssuer{ClientID: "conformance-client", key: newRSA(), stranger: newRSA(), keyID: "key-1"}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, Obj{
			"issuer": o.URL, "jwks_uri": o.URL + "/keys",
			"authorization_endpoint": o.URL + "/auth", "token_endpoint": o.URL + "/token",
			"response_types_supported": []string{"id_token"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, Obj{"keys": []Obj{{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": o.keyID,
			"n": b64.EncodeToString(o.key.N.Bytes()),
			"e": b64.EncodeToString(big.NewInt(int64(o.key.E)).Bytes()),
		}}})
	})
	o.URL = serveTLS(mux, &tls.Config{Certificates: []tls.Certificate{ca.Server()}})
	return o
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// TokenHook is a remote token authenticator: it answers TokenReviews.
type TokenHook struct {
	URL string

	mu       sync.Mutex
	answers  map[string]Obj
	requests map[string][]TokenCall
}

// TokenCall is one received TokenReview.
type TokenCall struct {
	Review     Obj
	Method     string
	ClientCert string // common name of the caller's certificate
}

// Answer sets the reply for a token: the `status`, or a whole TokenReview when
// it has an apiVersion.
func (h *TokenHook) Answer(token string, reply Obj) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[token] = reply
}

// Calls returns the reviews received for a token.
func (h *TokenHook) Calls(token string) []TokenCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]TokenCall(nil), h.requests[token]...)
}

func newTokenHook(serving *Authority, clients *Authority) *TokenHook {
	h := &TokenHook{answers: map[string]Obj{}, requests: map[string][]TokenCall{}}
	pool := x509.NewCertPool()
	pool.AddCert(clients.Cert)
	h.URL = serveTLS(h, &tls.Config{
		Certificates: []tls.Certificate{serving.Server()},
		ClientCAs:    pool, ClientAuth: tls.VerifyClientCertIfGiven,
	})
	return h
}

func (h *TokenHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := Obj{}
	_ = json.NewDecoder(r.Body).Decode(&review)
	call := TokenCall{Review: review, Method: r.Method}
	if certs := r.TLS.PeerCertificates; len(certs) > 0 {
		call.ClientCert = certs[0].Subject.CommonName
	}
	token := review.Str("spec.token")
	h.mu.Lock()
	h.requests[token] = append(h.requests[token], call)
	reply, known := h.answers[token]
	h.mu.Unlock()
	switch {
	case !known:
		reply = Obj{"authenticated": false}
		fallthrough
	case !reply.Has("apiVersion"):
		reply = Obj{"apiVersion": review["apiVersion"], "kind": "TokenReview", "status": reply}
	}
	writeJSON(w, reply)
}

// admissionServer answers admission and conversion reviews for the checks, by path.
type admissionServer struct {
	url      string
	ca       *Authority
	mu       sync.Mutex
	handlers map[string]func(request Obj) Obj
}

func newAdmissionServer(ca *Authority) *admissionServer {
	a := &admissionServer{ca: ca, handlers: map[string]func(Obj) Obj{}}
	a.url = serveTLS(a, &tls.Config{Certificates: []tls.Certificate{ca.Server()}})
	return a
}

func (a *admissionServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	review := Obj{}
	_ = json.NewDecoder(r.Body).Decode(&review)
	a.mu.Lock()
	handle := a.handlers[strings.TrimPrefix(r.URL.Path, "/")]
	a.mu.Unlock()
	response := Obj{"allowed": true}
	if handle != nil && !published(review.Str("request.name")) && !published(review.Str("request.object.metadata.name")) {
		response = handle(review.Map("request"))
	}
	response["uid"] = review.At("request.uid")
	writeJSON(w, Obj{"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})
}

// Hook describes an admission webhook of a check.
type Hook struct {
	Mutating    bool
	SideEffects string // default None
	Resources   string // default "configmaps"
	Operations  string // default "CREATE, UPDATE"
	Version     string // API version of the configuration, default v1
	Groups      string // default any
	Versions    string // API versions in the rule, default any
	Handle      func(request Obj) Obj
}

// Webhook registers an admission webhook for the check's own namespace.
func (t *T) Webhook(h Hook) {
	ns := t.NS()
	name, client := t.serveHook(h.Handle)
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	kind, plural := "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"
	if h.Mutating {
		kind, plural = "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"
	}
	version := or(h.Version, "v1")
	path := "/apis/admissionregistration.platform.io/" + version + "/" + plural
	t.POST(path, YAML(`
apiVersion: admissionregistration.platform.io/%s
kind: %s
metadata: {name: %s}
webhooks:
- name: %s.conformance.example.com
  admissionReviewVersions: [v1, v1beta1]
  sideEffects: %s
  timeoutSeconds: 5
  failurePolicy: Fail
  namespaceSelector: {matchLabels: {ns: %s}}
  rules: [{apiGroups: [%s], apiVersions: [%s], operations: [%s], resources: [%s]}]
  clientConfig: %s
`, version, kind, name, name, or(h.SideEffects, "None"), ns, or(h.Groups, `"*"`), or(h.Versions, `"*"`), or(h.Operations, "CREATE, UPDATE"),
		or(h.Resources, "configmaps"), client)).OK()
	t.Cleanup(func() { t.DELETE(path+"/"+name, nil) })
}

// serveHook serves a webhook under a new name. client is its clientConfig.
func (t *T) serveHook(handle func(request Obj) Obj) (name, client string) {
	name = t.Name("hook")
	a := t.Fix.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handlers[name] = handle
	return name, fmt.Sprintf(`{url: "%s/%s", caBundle: %s}`, a.url, name, base64.StdEncoding.EncodeToString(a.ca.PEM))
}

// ConvertedBy makes a conversion webhook out of a function that converts one object. It returns
// the conversion of a CustomResourceDefinition.
func (t *T) ConvertedBy(convert func(object Obj, apiVersion string)) string {
	_, client := t.serveHook(func(rq Obj) Obj {
		objects := rq.List("objects")
		for _, o := range objects {
			convert(o, rq.Str("desiredAPIVersion"))
			o["apiVersion"] = rq.Str("desiredAPIVersion")
		}
		return Obj{"convertedObjects": objects, "result": Obj{"status": "Success"}}
	})
	return "{strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: " + client + "}}"
}

// JSONPatchReply is an admission response that allows and patches.
func JSONPatchReply(patch string) Obj {
	return Obj{"allowed": true, "patchType": "JSONPatch", "patch": base64.StdEncoding.EncodeToString([]byte(patch))}
}
