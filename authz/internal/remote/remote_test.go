package remote

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
)

// service is a remote service with an answer.
type service struct {
	*httptest.Server
	calls  atomic.Int32
	asked  atomic.Pointer[map[string]any]
	answer func(calls int32, w http.ResponseWriter, apiVersion string)
}

func newService(t testing.TB, answer func(calls int32, w http.ResponseWriter, apiVersion string)) *service {
	t.Helper()
	s := &service{answer: answer}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := map[string]any{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Header.Get("Authorization") != "Bearer abc" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.asked.Store(&asked)
		s.answer(s.calls.Add(1), w, asked["apiVersion"].(string))
	}))
	t.Cleanup(s.Close)
	return s
}

// webhook returns a webhook that asks the service.
func (s *service) webhook(t testing.TB, version string) *Webhook {
	t.Helper()
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %q, certificate-authority: ca.crt}}]\n"+
		"users: [{name: a, user: {token: abc}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n", s.URL)
	for name, content := range map[string]string{"ca.crt": string(ca), "config": config} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apiVersion, err := APIVersion(version, vocabulary.K8s())
	if err != nil {
		t.Fatal(err)
	}
	w, err := New(Config{File: filepath.Join(folder, "config"), APIVersion: apiVersion, AllowedTTL: time.Minute, DeniedTTL: time.Minute, Timeout: Timeout})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func answering(content string) func(int32, http.ResponseWriter, string) {
	return func(_ int32, w http.ResponseWriter, apiVersion string) {
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"SubjectAccessReview","status":%s}`, apiVersion, content)
	}
}

var jane = services.UserInfo{Name: "jane", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"scope": {"a"}}}

// TestQuestions checks what is sent in both versions, and that answers are cached.
func TestQuestions(t *testing.T) {
	for version, groups := range map[string]string{"v1": "groups", "v1beta1": "group"} {
		s := newService(t, answering(`{"allowed":true,"reason":"because"}`))
		w := s.webhook(t, version)
		ask := services.Attributes{User: jane, Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "b"}
		for range 3 {
			d, err := w.Authorize(t.Context(), ask)
			if err != nil || !d.Allowed || d.Reason != "because" {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%s: %d calls", version, n)
		}
		got, err := json.Marshal((*s.asked.Load())["spec"])
		want := `{"extra":{"scope":["a"]},"` + groups + `":["g"],"resourceAttributes":{"group":"apps","name":"b","namespace":"a","resource":"deployments","subresource":"scale","verb":"get","version":"v1"},"uid":"7","user":"jane"}`
		if err != nil || string(got) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", version, got, want)
		}
		if _, err := w.Authorize(t.Context(), services.Attributes{User: jane, Verb: "get", Path: "/healthz"}); err != nil {
			t.Error(err)
		}
		if got, _ := json.Marshal((*s.asked.Load())["spec"].(map[string]any)["nonResourceAttributes"]); string(got) != `{"path":"/healthz","verb":"get"}` {
			t.Errorf("%s: a path: %s", version, got)
		}
	}
}

// TestSelectorsOfQuestions: the service is asked with the requirements of selectors, as far as
// they can be parsed, if it is to have them. Conditions see them too.
func TestSelectorsOfQuestions(t *testing.T) {
	ask := services.Attributes{User: jane, Verb: "list", Resource: "pods", FieldSelector: "spec.nodeName=a,status.phase!=Failed", LabelSelector: "app in (b,a),!old"}
	unreadable := services.Attributes{User: jane, Verb: "list", Resource: "pods", FieldSelector: "a", LabelSelector: "a > 1,="}
	const both = `{"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["a"]},{"key":"status.phase","operator":"NotIn","values":["Failed"]}]},` +
		`"labelSelector":{"requirements":[{"key":"app","operator":"In","values":["a","b"]},{"key":"old","operator":"DoesNotExist"}]},"resource":"pods","verb":"list"}`
	const none = `{"resource":"pods","verb":"list"}`
	for _, c := range []struct {
		sends bool
		ask   services.Attributes
		want  string
	}{{true, ask, both}, {true, unreadable, none}, {false, ask, none}} {
		s := newService(t, answering(`{"allowed":true}`))
		w := s.webhook(t, "v1")
		w.config.Selectors = c.sends
		w.config.Conditions = conditions(t, "has(request.resourceAttributes.fieldSelector) == "+strconv.FormatBool(c.want == both))
		if _, err := w.Authorize(t.Context(), c.ask); err != nil || s.calls.Load() != 1 {
			t.Fatalf("%+v: %d calls, %v", c.ask, s.calls.Load(), err)
		}
		if got, _ := json.Marshal((*s.asked.Load())["spec"].(map[string]any)["resourceAttributes"]); string(got) != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.ask, got, c.want)
		}
	}
}

// TestAnswers: whatever the service answers, only a valid one allows.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer          func(int32, http.ResponseWriter, string)
		allowed, denied bool
		failure         string
		calls           int32
	}{
		"denied":     {answer: answering(`{"denied":true,"reason":"no"}`), denied: true, calls: 1},
		"no opinion": {answer: answering(`{}`), calls: 1},
		"both":       {answer: answering(`{"allowed":true,"denied":true}`), failure: "both allowed and denied", calls: 1},
		"another kind": {answer: func(_ int32, w http.ResponseWriter, _ string) {
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Pod","status":{"allowed":true}}`))
		}, failure: "answered Pod", calls: 1},
		"no JSON": {answer: func(_ int32, w http.ResponseWriter, _ string) { _, _ = w.Write([]byte(`yes`)) }, failure: "response", calls: 1},
		"too long": {answer: func(_ int32, w http.ResponseWriter, v string) {
			answering(`{"allowed":true,"reason":"`+strings.Repeat("x", int(ledger.DecisionAnswer.Bytes))+`"}`)(0, w, v)
		}, failure: "more than", calls: 1},
		"a refusal with content": {answer: func(_ int32, w http.ResponseWriter, v string) {
			w.WriteHeader(http.StatusForbidden)
			answering(`{"allowed":true}`)(0, w, v)
		}, failure: "403", calls: 1},
		"an error that passes": {answer: func(n int32, w http.ResponseWriter, v string) {
			if n == 1 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			answering(`{"allowed":true}`)(n, w, v)
		}, allowed: true, calls: 2},
		"a redirect": {answer: func(_ int32, w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, failure: "307", calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, c.answer)
			d, err := s.webhook(t, "v1").Authorize(t.Context(), services.Attributes{User: jane, Verb: "get", Resource: "pods"})
			if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("error: %v", err)
			}
			if d.Allowed != c.allowed || d.Denied != c.denied || s.calls.Load() != c.calls {
				t.Errorf("%+v after %d calls", d, s.calls.Load())
			}
		})
	}
}

// TestLargeQuestionsAreNotCached: a client cannot fill the cache with questions of any size.
func TestLargeQuestionsAreNotCached(t *testing.T) {
	s := newService(t, answering(`{}`))
	w := s.webhook(t, "v1")
	for range 2 {
		if _, err := w.Authorize(t.Context(), services.Attributes{User: jane, Verb: "get", Path: "/" + strings.Repeat("a", maxQuestion)}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// FuzzReply: only a SubjectAccessReview that says so allows a request, or denies it.
func FuzzReply(f *testing.F) {
	var body []byte
	w := newService(f, func(_ int32, w http.ResponseWriter, _ string) { _, _ = w.Write(body) }).webhook(f, "v1")
	for _, status := range []string{"{allowed: true}", `{"allowed":true}`, `{"allowed":true,"denied":true}`, `{"denied":true,"reason":"no"}`, `{"allowed":false,"evaluationError":"x"}`, `null`, `[]`} {
		f.Add([]byte(`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":` + status + `}`))
	}
	asked := 0
	f.Fuzz(func(t *testing.T, reply []byte) {
		body = reply
		asked++ // so that no answer is cached
		d, err := w.Authorize(t.Context(), services.Attributes{Verb: "get", Path: fmt.Sprint(asked)})
		if !d.Allowed && !d.Denied {
			return
		}
		var said struct {
			APIVersion, Kind string
			Status           struct{ Allowed, Denied bool }
		}
		if broken := json.Unmarshal(reply, &said); broken != nil || err != nil || said.Kind != "SubjectAccessReview" || d.Allowed != said.Status.Allowed || d.Denied != said.Status.Denied || d.Allowed == d.Denied {
			t.Errorf("%q: %+v, %v", reply, d, err)
		}
	})
}
