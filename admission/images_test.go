package admission_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/contract"
	"github.com/portico-platform/portico/services/kit/kittest"
	"github.com/portico-platform/portico/services/kit/run/peertls"
)

// policy is an image policy service, which answers all questions with one function.
type policy struct {
	*httptest.Server
	asked  atomic.Int32
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request)]
}

func servePolicy(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *policy {
	t.Helper()
	p := &policy{}
	p.answer.Store(&answer)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		(*p.answer.Load())(w, r)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

// status answers with a status, in JSON.
func status(status string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"apiVersion":"imagepolicy.platform.io/v1alpha1","kind":"ImageReview","status":%s}`, status)
	}
}

// flags returns those that turn the plugin on with a kubeconfig of the service.
func (p *policy) flags(t *testing.T, more string) []string {
	t.Helper()
	folder := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw})
	for name, content := range map[string]string{"ca.pem": string(ca), "kubeconfig": `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: remote, user: me}}]
clusters: [{name: remote, cluster: {server: "` + p.URL + `/policy", certificate-authority: ca.pem}}]
users: [{name: me, user: {token: secret}}]
`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return append(alone("ImagePolicyWebhook"), configuration(t, fmt.Sprintf(`
- name: ImagePolicyWebhook
  configuration: {imagePolicy: {kubeConfigFile: %s, retryBackoff: 1%s}}
`, filepath.Join(folder, "kubeconfig"), more)))
}

func pod(image string) services.AdmissionRequest {
	return createOf("", "pods", `{"metadata":{"annotations":{"a.image-policy.platform.io/ticket":"1","other":"x"}},"spec":{"containers":[{"image":"`+image+`"}],"initContainers":[{"image":"first"}]}}`)
}

func TestImagePolicyWebhook(t *testing.T) {
	var question map[string]any
	s := servePolicy(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || r.Method != http.MethodPost || r.URL.Path != "/policy" || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s with %q: %v", r.Method, r.URL, r.Header, err)
		}
		status(`{"allowed":true,"auditAnnotations":{"by":"me","not valid":"x"}}`)(w, r)
	})
	open := func(t *testing.T) services.Admission { return started(t, cluster(t), s.flags(t, "")...) }
	kittest.LocalAndRemote(t, contract.Admission, open, func(t *testing.T, open func(*testing.T) services.Admission) {
		s.asked.Store(0)
		a := open(t)
		for range 3 { // the later ones are answered from the cache
			got, err := a.Validate(t.Context(), pod("good"))
			if err != nil || len(got.AuditAnnotations) != 1 || got.AuditAnnotations["imagepolicywebhook.image-policy.platform.io/by"] != "me" {
				t.Errorf("%v, %v", got.AuditAnnotations, err)
			}
		}
		spec, _ := json.Marshal(question["spec"])
		if want := `{"annotations":{"a.image-policy.platform.io/ticket":"1"},"containers":[{"image":"good"},{"image":"first"}],"namespace":"here"}`; string(spec) != want || s.asked.Load() != 1 {
			t.Errorf("asked %d times, %s", s.asked.Load(), spec)
		}
		if _, err := a.Validate(t.Context(), updateOf("pods", `{}`, string(pod("other").Object))); err != nil || s.asked.Load() != 2 {
			t.Errorf("an update: asked %d times, %v", s.asked.Load(), err)
		}
		exec := pod("other")
		exec.Operation, exec.Subresource = services.OperationConnect, "exec"
		if _, err := a.Validate(t.Context(), exec); err != nil || s.asked.Load() != 2 {
			t.Errorf("an exec: asked %d times, %v", s.asked.Load(), err)
		}
	})
}

func TestImagePolicyRefuses(t *testing.T) {
	for answer, want := range map[string]string{
		`{"allowed":false,"reason":"too old"}`: `pods "c" is forbidden: image policy webhook backend denied one or more images: too old`,
		`{"allowed":false}`:                    `pods "c" is forbidden: one or more images rejected by webhook backend`,
		`{}`:                                   `pods "c" is forbidden: one or more images rejected by webhook backend`,
	} {
		s := servePolicy(t, status(answer))
		a := started(t, cluster(t), s.flags(t, ", defaultAllow: true, denyTTL: -1")...)
		for range 2 {
			if _, err := a.Validate(t.Context(), pod("x")); !services.IsReason(err, services.ReasonForbidden) || err.Error() != want {
				t.Errorf("%s: %v", answer, err)
			}
		}
		if s.asked.Load() != 2 {
			t.Errorf("%s: asked %d times without a cache", answer, s.asked.Load())
		}
	}
}

// TestImagePolicyFaults: whatever a service does, pods are refused, or allowed and
// marked, as the configuration says, and nothing is kept.
func TestImagePolicyFaults(t *testing.T) {
	code := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for name, x := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		tries  int32
		want   string
	}{
		"an error that passes": {code(500), 5, `an error on the server ("500 `},
		"a limit":              {code(429), 5, "the server has received too many requests"},
		"an error that stays":  {code(403), 1, "403 Forbidden"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, 1, "status code 307"},
		"no JSON": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "yes") }, 1, "not a"},
		"nothing": {code(200), 1, "not a"},
		"another kind": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"kind":"Other","status":{"allowed":true}}`)
		}, 1, "it returned Other"},
		"a huge answer": {func(w http.ResponseWriter, r *http.Request) {
			status(`{"allowed":true,"reason":"`+strings.Repeat("x", 8<<20)+`"}`)(w, r)
		}, 1, "more than"},
		"a hangup": {func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, 1, "the image policy webhook: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := servePolicy(t, x.answer)
			closed := started(t, cluster(t), s.flags(t, "")...)
			if _, err := closed.Validate(t.Context(), pod("x")); !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), x.want) || len(err.Error()) > 1<<10 {
				t.Errorf("got %.1000v", err)
			}
			if got := s.asked.Load(); got != x.tries && name != "a hangup" {
				t.Errorf("asked %d times, want %d", got, x.tries)
			}
			open := started(t, cluster(t), s.flags(t, ", defaultAllow: true")...)
			got, err := open.Validate(t.Context(), pod("x"))
			if err != nil || got.AuditAnnotations["imagepolicywebhook.image-policy.platform.io/failed-open"] != "true" {
				t.Errorf("%v, %v", got, err)
			}
			good := status(`{"allowed":true}`)
			s.answer.Store(&good)
			if got, err := closed.Validate(t.Context(), pod("x")); err != nil || len(got.AuditAnnotations) > 0 {
				t.Errorf("when it is well again: %v, %v", got, err)
			}
		})
	}
}

// TestImagePolicyAbsent: a service that is dead, slow or not who it should be.
func TestImagePolicyAbsent(t *testing.T) {
	dead := servePolicy(t, status(`{"allowed":true}`))
	flags := dead.flags(t, "")
	dead.Close()
	if _, err := started(t, cluster(t), flags...).Validate(t.Context(), pod("x")); !services.IsReason(err, services.ReasonForbidden) {
		t.Errorf("dead: %v", err)
	}
	slow := servePolicy(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		<-r.Context().Done()
	})
	a := started(t, cluster(t), slow.flags(t, ", defaultAllow: true")...)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := a.Validate(ctx, pod("x")); err == nil || time.Since(start) > 5*time.Second {
		t.Errorf("slow: %v after %v", err, time.Since(start))
	}
	known, impostor := servePolicy(t, status(`{"allowed":true}`)), serveAs(t, "impostor")
	flags = known.flags(t, "")
	path := kubeconfigOf(t, flags)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(content), known.URL, impostor, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := started(t, cluster(t), flags...).Validate(t.Context(), pod("x")); !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("impostor: %v", err)
	}
}

// serveAs returns the URL of a server with a certificate of an authority of its own.
func serveAs(t *testing.T, name string) string {
	t.Helper()
	authority, err := peertls.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	files, err := authority.Issue(t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(status(`{"allowed":true}`)))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL
}

// kubeconfigOf returns the path of the kubeconfig file that flags lead to.
func kubeconfigOf(t *testing.T, flags []string) string {
	t.Helper()
	_, file, _ := strings.Cut(flags[len(flags)-1], "=")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(content), "kubeConfigFile: ")
	path, _, _ := strings.Cut(rest, ",")
	return path
}

func TestImagePolicyConfiguration(t *testing.T) {
	s := servePolicy(t, status(`{"allowed":true}`))
	for content, want := range map[string]string{
		`{imagePolicy: {}}`:                           "imagePolicy.kubeConfigFile",
		`{imagePolicy: {kubeConfigFile: /missing}}`:   "/missing",
		`{imagePolicy: {kubeConfig: x}}`:              `unknown field "imagePolicy.kubeConfig"`,
		`{imagePolicy: {allowTTL: 1801}}`:             "imagePolicy.allowTTL",
		`{imagePolicy: {denyTTL: -2}}`:                "imagePolicy.denyTTL",
		`{imagePolicy: {retryBackoff: 300001}}`:       "imagePolicy.retryBackoff",
		`{imagePolicy: {allowTTL: 9000000000000000}}`: "imagePolicy.allowTTL",
		`{imagePolicy: {allowTTL: 5m}}`:               "imagePolicy.allowTTL",
	} {
		_, err := start(t, cluster(t), append(alone("ImagePolicyWebhook"), configuration(t, "- name: ImagePolicyWebhook\n  configuration: "+content+"\n"))...)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "admission.yaml") {
			t.Errorf("%s: %v", content, err)
		}
	}
	for what, change := range map[string][2]string{
		"plain HTTP":  {"server: \"https", "server: \"http"},
		"no trust":    {"certificate-authority: ca.pem", "certificate-authority: none.pem"},
		"no context":  {"current-context: c", "current-context: d"},
		"no YAML":     {"clusters: [", "clusters: {"},
		"a plugin":    {"{token: secret}", "{auth-provider: {name: x}}"},
		"half a pair": {"{token: secret}", "{client-certificate-data: YQ==}"},
	} {
		flags := s.flags(t, "")
		path := kubeconfigOf(t, flags)
		remote, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(remote), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := start(t, cluster(t), flags...); err == nil || !strings.Contains(err.Error(), "imagePolicy.kubeConfigFile") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
