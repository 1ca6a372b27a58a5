// Package rights tests that users cannot escalate their permissions: neither by writing
// roles and bindings, nor by impersonation, nor through certificates, defaults or webhooks
// of the service. Its bodies use the API of a running suite, with the tokens of service
// accounts that have exactly the permissions of a case. They serve "Impersonation",
// "Authorization notes" and "Admission plugins" of the specification.
package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// stage is a namespace of one test, the administrator's cluster, and people with certain
// permissions.
type stage struct {
	*testing.T
	admin *cluster.Cluster
	// id is a part of all names that are not in the namespace, and the namespace itself.
	id     string
	people map[string]*cluster.Cluster
	names  *strings.Replacer
}

// newStage makes a namespace.
func newStage(t *testing.T, c *cluster.Cluster) *stage {
	t.Helper()
	v := c.Vocabulary
	s := &stage{T: t, admin: c, id: "rights-" + rand.String(6), people: map[string]*cluster.Cluster{}}
	s.names = strings.NewReplacer("$id", s.id, "$rbac", v.Group("rbac.authorization."), "$authorization", v.Group("authorization."),
		"$authentication", v.Group("authentication."), "$certificates", v.Group("certificates."), "$scheduling", v.Group("scheduling."),
		"$admission", v.Group("admissionregistration."), "$domain", v.Domain, "$system", v.Namespace("system"),
		"$autoupdate", v.Qualified("rbac.authorization", "autoupdate"))
	s.do(c, "POST /api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"$id"}}`, 0)
	s.Cleanup(func() { s.remove("/api/v1/namespaces/$id") })
	return s
}

// remove deletes the objects of a test.
func (s *stage) remove(path string) {
	_, _ = s.admin.Do(context.Background(), cluster.Request{Method: http.MethodDelete, Path: s.names.Replace(path)})
}

// do sends what a line says, as "GET /path"; a patch names its kind, as in "PATCH+json
// /path". The answer has to have the code; 0 is any success.
func (s *stage) do(c *cluster.Cluster, line, body string, code int) cluster.Answer {
	s.Helper()
	method, path, _ := strings.Cut(line, " ")
	r := cluster.Request{Path: s.names.Replace(path), Body: s.names.Replace(body)}
	var kind string
	r.Method, kind, _ = strings.Cut(method, "+")
	if r.Method == http.MethodPatch {
		r.Type = map[string]string{"": "application/merge-patch+json", "json": "application/json-patch+json",
			"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml"}[kind]
	}
	answer := c.Ask(s.T, r)
	if code != 0 && answer.Code != code || code == 0 && answer.Code >= http.StatusBadRequest {
		s.Errorf("%s %s %.300s\ngot %d, want %d: %.500s", method, r.Path, r.Body, answer.Code, code, answer.Body)
	}
	return answer
}

// object reads an object as the administrator.
func (s *stage) object(path string) map[string]any {
	s.Helper()
	var object map[string]any
	s.do(s.admin, "GET "+path, "", http.StatusOK).Decode(s.T, &object)
	return object
}

// person makes a service account whose only permissions beyond those of every account
// are these rules, in all namespaces, and the role view where that is said.
func (s *stage) person(name, rules string, roles ...string) *cluster.Cluster {
	s.Helper()
	role := "$id-" + name
	s.do(s.admin, "POST /api/v1/namespaces/$id/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"`+name+`"}}`, 0)
	s.role(role, rules)
	for i, held := range append(roles, role) {
		s.bind(fmt.Sprintf("%s-%d", role, i), held, name)
	}
	answer := s.do(s.admin, "POST /api/v1/namespaces/$id/serviceaccounts/"+name+"/token",
		`{"apiVersion":"$authentication/v1","kind":"TokenRequest","spec":{}}`, 0)
	var request struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(answer.Body), &request); err != nil || request.Status.Token == "" {
		s.Fatalf("no token: %v: %.300s", err, answer.Body)
	}
	c := *s.admin
	c.Token = request.Status.Token
	s.people[name] = &c
	return &c
}

// role makes a cluster role, as the administrator.
func (s *stage) role(name, rules string) {
	s.Helper()
	s.do(s.admin, "POST /apis/$rbac/v1/clusterroles", clusterRole(name, "", rules), 0)
	s.Cleanup(func() { s.remove("/apis/$rbac/v1/clusterroles/" + name) })
}

// bind binds an account of the namespace to a cluster role everywhere.
func (s *stage) bind(name, role, account string) {
	s.Helper()
	s.do(s.admin, "POST /apis/$rbac/v1/clusterrolebindings", binding("ClusterRoleBinding", name, role, account), 0)
	s.Cleanup(func() { s.remove("/apis/$rbac/v1/clusterrolebindings/" + name) })
}

func clusterRole(name, metadata, rules string) string {
	return `{"apiVersion":"$rbac/v1","kind":"ClusterRole","metadata":{"name":"` + name + `"` + metadata + `},"rules":[` + rules + `]}`
}

func binding(kind, name, role, account string) string {
	return `{"apiVersion":"$rbac/v1","kind":"` + kind + `","metadata":{"name":"` + name + `"},"roleRef":{"apiGroup":"$rbac","kind":"ClusterRole","name":"` +
		role + `"},"subjects":[{"kind":"ServiceAccount","namespace":"$id","name":"` + account + `"}]}`
}

// rule is a rule of a role about one group.
func rule(group, resources, verbs string, names ...string) string {
	quoted := func(text string) string { return `["` + strings.ReplaceAll(text, " ", `","`) + `"]` }
	r := `{"apiGroups":["` + group + `"],"resources":` + quoted(resources) + `,"verbs":` + quoted(verbs)
	if len(names) > 0 {
		r += `,"resourceNames":` + quoted(strings.Join(names, " "))
	}
	return r + `}`
}

// attempt is a request that must be denied or allowed.
type attempt struct {
	name, who, line, body string
	code                  int // 0: it succeeds
}

// try makes all attempts, in their order.
func (s *stage) try(attempts []attempt) {
	s.Helper()
	for _, a := range attempts {
		s.Run(a.name, func(t *testing.T) {
			one := *s
			one.T = t
			one.do(s.people[a.who], a.line, a.body, a.code)
		})
	}
}

// patience is the timeout of await.
const patience = 20 * time.Second

// await polls a condition until it is true.
func (s *stage) await(what string, ok func() bool) {
	s.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			s.Fatal("not in time: " + what)
		case <-ticks.C:
		}
	}
}
