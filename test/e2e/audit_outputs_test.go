package e2e

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// auditReceiver is a webhook that keeps the URIs of events, of callers with its token.
type auditReceiver struct {
	mu   sync.Mutex
	uris []string
}

func (s *auditReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var list struct {
		Kind, APIVersion string
		Items            []auditEvent
	}
	if r.Header.Get("Authorization") != "Bearer of-the-audit" || json.NewDecoder(r.Body).Decode(&list) != nil || list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list.Items {
		s.uris = append(s.uris, e.RequestURI)
	}
}

func (s *auditReceiver) has(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.uris, uri)
}

// TestAuditOutputs: a running suite writes the legacy format in batches, and sends the same
// events to a webhook with the credentials of its kubeconfig; both have the last events after
// a stop.
func TestAuditOutputs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts the suite")
	}
	received := &auditReceiver{}
	server := httptest.NewTLSServer(received)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	config, path := filepath.Join(dir, "webhook.kubeconfig"), filepath.Join(dir, "audit.log")
	if err := clientcmd.WriteToFile(api.Config{CurrentContext: "audit",
		Clusters: map[string]*api.Cluster{"audit": {Server: server.URL,
			CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}},
		AuthInfos: map[string]*api.AuthInfo{"audit": {Token: "of-the-audit"}},
		Contexts:  map[string]*api.Context{"audit": {Cluster: "audit", AuthInfo: "audit"}},
	}, config); err != nil {
		t.Fatal(err)
	}
	a := startAllInOne(t, vocabulary.K8s(), "--audit-log-path="+path, "--audit-log-format=legacy", "--audit-log-mode=batch", "--audit-log-maxsize=10",
		"--audit-webhook-config-file="+config)
	ok(t, a.Cluster, cluster.Request{Path: "/api/v1/nodes?limit=3"})
	eventually(t, "the webhook has the event", func() bool { return received.has("/api/v1/nodes?limit=3") })
	ok(t, a.Cluster, cluster.Request{Path: "/api/v1/nodes?limit=4"})
	a.process.stop(t)
	if !received.has("/api/v1/nodes?limit=4") {
		t.Error("the webhook lacks the last event")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`uri="/api/v1/nodes?limit=3"`, `uri="/api/v1/nodes?limit=4"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
}
