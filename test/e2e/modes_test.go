package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestModesInOneProcess and TestModesInProcesses run the suite with several modes of
// authorization.
func TestModesInOneProcess(t *testing.T) {
	t.Parallel()
	v := vocabulary.K8s()
	modes(t, startAllInOne(t, v, modeFlags(t, v)...).Cluster)
}

func TestModesInProcesses(t *testing.T) {
	t.Parallel()
	v := vocabulary.Platform()
	s := newSuite(t, v)
	for _, p := range programs() {
		if p.name == "authz" {
			p.args = append(p.args[:len(p.args):len(p.args)], modeFlags(t, v)...)
		}
		s.start(t, p)
	}
	modes(t, s.connect(t, "frontdoor"))
}

func modeFlags(t *testing.T, v vocabulary.Vocabulary) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policies")
	policy := `{"apiVersion":"` + v.Qualified("abac.authorization", "v1beta1") + `","kind":"Policy","spec":{"user":"alice","readonly":true,"namespace":"*","resource":"configmaps","apiGroup":""}}`
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--authorization-mode=Node,ABAC,RBAC", "--authorization-policy-file=" + file}
}

func modes(t *testing.T, c *cluster.Cluster) {
	s := newScene(t, c)
	as := func(user, group, path string) int {
		return c.Ask(t, cluster.Request{Path: path, Header: http.Header{"Impersonate-User": {user}, "Impersonate-Group": {group}}}).Code
	}
	expect := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, not %d", what, got, want)
		}
	}
	create := func(version, resource, body string) {
		t.Helper()
		if a := c.Ask(t, cluster.Request{Method: http.MethodPost, Path: s.in(version, resource), Body: body}); a.Code != s.created {
			t.Fatalf("%s: %d %s", resource, a.Code, a.Body)
		}
	}
	create("v1", "secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"used"}}`)
	create("v1", "secrets", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"unused"}}`)
	eventually(t, "the account of pods is there", func() bool {
		return c.Ask(t, cluster.Request{Path: s.in("v1", "serviceaccounts/default")}).Code == http.StatusOK
	})

	agent := func(path string) int { return as("system:node:n", "system:nodes", s.in("v1", path)) }
	expect("a Secret before the pod", agent("secrets/used"), http.StatusForbidden)
	create("v1", "pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"a","image":"a","envFrom":[{"secretRef":{"name":"used"}}]}]}}`)
	expect("the Secret of a pod on the node", agent("secrets/used"), http.StatusOK)
	expect("the Secret in a list by name", agent("secrets?fieldSelector=metadata.name%3Dused"), http.StatusOK)
	expect("all Secrets", agent("secrets"), http.StatusForbidden)
	expect("another Secret", agent("secrets/unused"), http.StatusForbidden)
	expect("by the rules for nodes", agent("services"), http.StatusOK)
	expect("the pods of the node", agent("pods?fieldSelector=spec.nodeName%3Dn"), http.StatusOK)
	expect("another node", as("system:node:m", "system:nodes", s.in("v1", "secrets/used")), http.StatusForbidden)

	expect("by the file", as("alice", "x", s.in("v1", "configmaps")), http.StatusOK)
	expect("not in the file", as("alice", "x", s.in("v1", "secrets")), http.StatusForbidden)
	expect("by a role", as("jane", "system:masters", s.in("v1", "secrets")), http.StatusOK)
	reasons(t, c)
}

// reasons asks why a user may do something, or may not.
func reasons(t *testing.T, c *cluster.Cluster) {
	rbac, group := c.Vocabulary.Group("rbac.authorization."), c.Vocabulary.Group("authorization.")
	ok(t, c, post("/apis/"+rbac+"/v1/clusterroles", `{"metadata":{"name":"explained"},"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]}`))
	ok(t, c, post("/apis/"+rbac+"/v1/clusterrolebindings", `{"metadata":{"name":"explained"},"roleRef":{"apiGroup":"`+rbac+`","kind":"ClusterRole","name":"explained"},"subjects":[{"kind":"User","name":"ella"}]}`))
	const allowed = `RBAC: allowed by ClusterRoleBinding "explained" of ClusterRole "explained" to User "ella"`
	const rule = "verbs [get] on resources [nodes] in groups []"
	for query, want := range map[string]struct{ get, delete string }{
		"":              {allowed, "No policy matched."},
		"?explain=true": {allowed + ", by the rule: " + rule, `No policy matched., nearest miss: ClusterRoleBinding "explained" of ClusterRole "explained" to User "ella": ` + rule + " does not cover the verb"},
	} {
		for verb, reason := range map[string]string{"get": want.get, "delete": want.delete} {
			var review struct{ Status struct{ Reason string } }
			ok(t, c, post("/apis/"+group+"/v1/subjectaccessreviews"+query, `{"spec":{"user":"ella","resourceAttributes":{"verb":"`+verb+`","resource":"nodes"}}}`)).Decode(t, &review)
			if review.Status.Reason != reason {
				t.Errorf("%s%s: %q, want %q", verb, query, review.Status.Reason, reason)
			}
		}
	}
	refused := c.Ask(t, cluster.Request{Method: http.MethodDelete, Path: "/api/v1/nodes/n", Header: http.Header{"Impersonate-User": {"ella"}}})
	if refused.Code != http.StatusForbidden || strings.Contains(refused.Body, "explained") {
		t.Errorf("the refused user learns: %d %s", refused.Code, refused.Body)
	}
}
