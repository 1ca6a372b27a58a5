package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Constrained tests the rights of constrained impersonation, which release 1.36 has: each is for
// some requests only, and gives no more than its mode.
func Constrained(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	g := c.Vocabulary.Group("authentication.")
	reviews := "/apis/" + g + "/v1/selfsubjectreviews"
	on := func(mode string) string { return rule(g, "selfsubjectreviews", "impersonate-on:"+mode+":create") }
	s.person("user", on("user-info")+","+rule(g, "users", "impersonate:user-info", "jane")+","+rule(g, "groups", "impersonate:user-info", "dev", "system:masters"))
	s.person("half", on("user-info")+","+rule("", "users", "impersonate:user-info", "jane"))
	s.person("other-half", rule(g, "users", "impersonate:user-info", "jane"))
	s.person("account", on("serviceaccount")+","+rule(g, "serviceaccounts", "impersonate:serviceaccount", "user"))
	s.person("nodes", on("arbitrary-node")+","+rule(g, "nodes", "impersonate:arbitrary-node", "n1"))
	s.person("agent", on("associated-node")+","+rule(g, "nodes", "impersonate:associated-node"))
	s.do(c, "POST /api/v1/namespaces/$id/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"agent"},"spec":{"nodeName":"n1","serviceAccountName":"agent","containers":[{"name":"a","image":"a"}]}}`, 0)
	var bound struct{ Status struct{ Token string } }
	s.do(c, "POST /api/v1/namespaces/$id/serviceaccounts/agent/token", `{"apiVersion":"$authentication/v1","kind":"TokenRequest","spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"agent"}}}`, 0).Decode(t, &bound)
	onNode := *c
	onNode.Token = bound.Status.Token
	s.people["agent on n1"] = &onNode

	type headers = map[string][]string
	account := "system:serviceaccount:" + s.id + ":user"
	for _, x := range []struct {
		who     string
		headers headers
		want    string // the groups, or the reason of a 403
	}{
		{"user", headers{"Impersonate-User": {"jane"}}, "system:authenticated"},
		{"user", headers{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev"}}, "dev system:authenticated"},
		{"user", headers{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev", "system:masters"}}, "impersonating the system:masters group is not allowed"},
		{"user", headers{"Impersonate-User": {"bob"}}, `users.` + g + ` "bob" is forbidden`},
		{"user", headers{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"7"}}, `cannot impersonate:user-info resource "uids"`},
		{"user", headers{"Impersonate-User": {account}}, "cannot impersonate-on:serviceaccount:create"},
		{"user", headers{"Impersonate-User": {"system:node:n1"}}, "cannot impersonate-on:arbitrary-node:create"},
		{"half", headers{"Impersonate-User": {"jane"}}, `cannot impersonate:user-info resource "users" in API group "` + g + `"`},
		{"other-half", headers{"Impersonate-User": {"jane"}}, "cannot impersonate-on:user-info:create"},
		{"account", headers{"Impersonate-User": {account}}, "system:serviceaccounts system:serviceaccounts:" + s.id + " system:authenticated"},
		{"account", headers{"Impersonate-User": {account}, "Impersonate-Group": {"dev"}}, `cannot impersonate resource "serviceaccounts"`},
		{"nodes", headers{"Impersonate-User": {"system:node:n1"}}, "system:nodes system:authenticated"},
		{"nodes", headers{"Impersonate-User": {"system:node:n2"}}, `nodes.` + g + ` "n2" is forbidden`},
		{"agent on n1", headers{"Impersonate-User": {"system:node:n1"}}, "system:nodes system:authenticated"},
		{"agent on n1", headers{"Impersonate-User": {"system:node:n2"}}, "cannot impersonate-on:arbitrary-node:create"},
		{"agent", headers{"Impersonate-User": {"system:node:n1"}}, "cannot impersonate-on:arbitrary-node:create"},
	} {
		answer := s.people[x.who].Ask(t, cluster.Request{Method: http.MethodPost, Header: x.headers, Path: reviews, Body: `{"apiVersion":"` + g + `/v1","kind":"SelfSubjectReview"}`})
		var status cluster.Status
		var review struct {
			Status struct {
				UserInfo struct {
					Username string
					Groups   []string
				}
			}
		}
		if answer.Code == http.StatusCreated {
			answer.Decode(t, &review)
		} else {
			answer.Decode(t, &status)
		}
		got := review.Status.UserInfo
		refused := answer.Code == http.StatusForbidden && strings.Contains(status.Message, x.want)
		if allowed := strings.Join(got.Groups, " ") == x.want && got.Username == x.headers["Impersonate-User"][0]; !allowed && !refused {
			t.Errorf("%s as %v: got %d, want %s: %.500s", x.who, x.headers, answer.Code, x.want, answer.Body)
		}
	}
	// The same users may not be impersonated for another request.
	for who, user := range map[string]string{"user": "jane", "account": account, "nodes": "system:node:n1", "agent on n1": "system:node:n1"} {
		answer := s.people[who].Ask(t, cluster.Request{Header: headers{"Impersonate-User": {user}}, Path: "/api/v1/namespaces/" + s.id + "/pods"})
		if answer.Code != http.StatusForbidden || !strings.Contains(answer.Body, "cannot impersonate-on:") {
			t.Errorf("%s lists pods as %s: %d %.300s", who, user, answer.Code, answer.Body)
		}
	}
}
