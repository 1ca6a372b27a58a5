package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestAuthorizationConfigInOneProcess and TestAuthorizationConfigInProcesses run the suite with
// the authorizers of a file and the issuers of another one, which are replaced.
func TestAuthorizationConfigInOneProcess(t *testing.T) {
	t.Parallel()
	f := newAuthorizersFile(t, vocabulary.K8s())
	i := newIssuersFile(t, f.vocabulary)
	a := startAllInOne(t, f.vocabulary, "--authorization-config="+f.path, "--authentication-config="+i.path)
	i.replaced(t, a.Cluster)
	f.replaced(t, a.Cluster)
	f.write(t, f.webhook("request.user !="))
	if err := os.WriteFile(i.path, []byte("jwt: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refused files are counted", func() bool {
		metrics := ok(t, a.Cluster, cluster.Request{Path: "/metrics"}).Body
		return strings.Contains(metrics, `apiserver_authorization_config_controller_automatic_reloads_total{status="failure"} 1`) &&
			strings.Contains(metrics, `apiserver_authentication_config_controller_automatic_reloads_total{status="failure"} 1`)
	})
	if answer := asMallory(t, a.Cluster, secretsPath); answer.Code != http.StatusForbidden {
		t.Errorf("a refused file changes what is denied: %d %s", answer.Code, answer.Body)
	}
}

func TestAuthorizationConfigInProcesses(t *testing.T) {
	t.Parallel()
	f := newAuthorizersFile(t, vocabulary.Platform())
	i := newIssuersFile(t, f.vocabulary)
	s := newSuite(t, f.vocabulary)
	for _, p := range programs() {
		switch p.name {
		case "authz":
			p.args = append(p.args[:len(p.args):len(p.args)], "--authorization-config="+f.path)
		case "authn":
			p.args = append(p.args[:len(p.args):len(p.args)], "--authentication-config="+i.path)
		}
		s.start(t, p)
	}
	c := s.connect(t, "frontdoor")
	i.replaced(t, c)
	f.replaced(t, c)
}

// authorizersFile is a file of --authorization-config, with a webhook that denies mallory to
// read Secrets.
type authorizersFile struct {
	vocabulary       vocabulary.Vocabulary
	path, kubeconfig string
}

func newAuthorizersFile(t *testing.T, v vocabulary.Vocabulary) authorizersFile {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			APIVersion string
			Spec       struct {
				User               string
				ResourceAttributes struct{ Resource string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		denied := asked.Spec.User == "mallory" && asked.Spec.ResourceAttributes.Resource == "secrets"
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"SubjectAccessReview","status":{"denied":%t,"reason":"corp says no"}}`, asked.APIVersion, denied)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	f := authorizersFile{vocabulary: v, path: filepath.Join(dir, "authorization"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	for path, content := range map[string]string{
		filepath.Join(dir, "ca.crt"): string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		f.kubeconfig: fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{name: a, cluster: {server: %q, certificate-authority: ca.crt}}]\n"+
			"users: [{name: a, user: {token: abc}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n", server.URL),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.write(t, f.webhook("has(request.resourceAttributes)"))
	return f
}

// webhook is the entry of the webhook for the requests that a condition selects.
func (f authorizersFile) webhook(condition string) string {
	return "- type: Webhook\n  name: corp\n  webhook: {timeout: 3s, cacheAuthorizedRequests: false, cacheUnauthorizedRequests: false, subjectAccessReviewVersion: v1,\n" +
		"    matchConditionSubjectAccessReviewVersion: v1, failurePolicy: NoOpinion, connectionInfo: {type: KubeConfigFile, kubeConfigFile: " + f.kubeconfig + "},\n" +
		"    matchConditions: [{expression: \"" + condition + "\"}]}\n"
}

// write writes the file: some authorizers, then Node and RBAC.
func (f authorizersFile) write(t *testing.T, authorizers string) {
	t.Helper()
	content := "apiVersion: " + f.vocabulary.Group("apiserver.config.") + "/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" + authorizers +
		"- {type: Node, name: node}\n- {type: RBAC, name: rbac}\n"
	if err := os.WriteFile(f.path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced replaces the file while mallory, who has all rights by a role, reads Secrets.
func (f authorizersFile) replaced(t *testing.T, c *cluster.Cluster) {
	rbac := c.Vocabulary.Group("rbac.authorization.")
	ok(t, c, post("/apis/"+rbac+"/v1/clusterrolebindings", `{"metadata":{"name":"mallory"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"mallory"}]}`))
	if a := asMallory(t, c, secretsPath); a.Code != http.StatusForbidden || !strings.Contains(a.Body, "corp says no") {
		t.Errorf("the webhook denies: %d %s", a.Code, a.Body)
	}
	if a := asMallory(t, c, "/api/v1/namespaces/default/configmaps"); a.Code != http.StatusOK {
		t.Errorf("the webhook has no opinion, and the role allows: %d %s", a.Code, a.Body)
	}
	f.write(t, f.webhook("request.user != 'mallory'"))
	eventually(t, "the new condition does not select the request", func() bool { return asMallory(t, c, secretsPath).Code == http.StatusOK })
	f.write(t, f.webhook("request.user == 'mallory'"))
	eventually(t, "the webhook denies again", func() bool { return asMallory(t, c, secretsPath).Code == http.StatusForbidden })
}

const secretsPath = "/api/v1/namespaces/default/secrets"

func asMallory(t *testing.T, c *cluster.Cluster, path string) cluster.Answer {
	t.Helper()
	return c.Ask(t, cluster.Request{Path: path, Header: http.Header{"Impersonate-User": {"mallory"}}})
}
