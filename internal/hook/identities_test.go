package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// secretServer is an API server that has nothing but Secrets.
type secretServer struct {
	*httptest.Server
	mu      sync.Mutex
	secrets map[string]*corev1.Secret
	// fail is the name of a Secret whose next write fails.
	fail string
}

func startSecretServer(t *testing.T) *secretServer {
	t.Helper()
	s := &secretServer{secrets: map[string]*corev1.Secret{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *secretServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	respond := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	refuse := func(code int32, reason metav1.StatusReason) {
		respond(int(code), metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason)})
	}
	name := path.Base(r.URL.Path)
	secret := &corev1.Secret{}
	if r.Method != http.MethodGet {
		body, err := io.ReadAll(r.Body)
		if err == nil { // the body is JSON or Protobuf
			_, _, err = scheme.Codecs.UniversalDeserializer().Decode(body, nil, secret)
		}
		if err != nil {
			refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		if name = secret.Name; name == s.fail {
			s.fail = ""
			refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError)
			return
		}
	}
	switch found := s.secrets[name]; {
	case r.Method == http.MethodPost && found != nil:
		refuse(http.StatusConflict, metav1.StatusReasonAlreadyExists)
		return
	case r.Method != http.MethodPost && found == nil:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	case r.Method != http.MethodGet:
		secret.APIVersion, secret.Kind = "v1", "Secret"
		s.secrets[name] = secret
	}
	respond(http.StatusOK, s.secrets[name])
}

// kubeconfig writes a configuration of a client.
func (s *secretServer) kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRunAfterAFailedOne: a run whose write of a Secret fails is followed by another one with the
// same volume, which succeeds with the identities of the first, and nothing remains in the volume.
func TestRunAfterAFailedOne(t *testing.T) {
	for _, fails := range []string{"p", "p-store"} {
		t.Run(fails, func(t *testing.T) {
			s := startSecretServer(t)
			dir := filepath.Join(t.TempDir(), "pki")
			args := []string{"identities", "--dir=" + dir, "--kubeconfig=" + s.kubeconfig(t), "--namespace=suite", "--prefix=p", "--server=https://api:443", "--workers-server=https://frontdoor:443"}
			run := func() (int, string) {
				var out, errs bytes.Buffer
				status := Main(t.Context(), args, &out, &errs)
				return status, out.String() + errs.String()
			}
			s.fail = fails
			if status, said := run(); status != 1 || !strings.Contains(said, "InternalError") {
				t.Fatalf("status %d: %s", status, said)
			}
			all := s.secrets["p"]
			if status, said := run(); status != 0 {
				t.Fatalf("the second run: status %d: %s", status, said)
			}
			if all != nil && !maps.EqualFunc(all.Data, s.secrets["p"].Data, bytes.Equal) {
				t.Error("the second run has made other identities")
			}
			if s.secrets["p-store"] == nil || s.secrets["p-frontdoor"] == nil {
				t.Errorf("there are only %d Secrets", len(s.secrets))
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left in the volume: %v, %v", left, err)
			}
		})
	}
}
