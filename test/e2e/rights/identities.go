package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Impersonation tests that a user who may impersonate certain users, groups and service
// accounts cannot impersonate others.
func Impersonation(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	g := c.Vocabulary.Group("authentication.")
	s.person("actor", strings.Join([]string{
		rule("", "users", "impersonate", "jane", "system:anonymous"), rule("", "groups", "impersonate", "dev", "system:unauthenticated"),
		rule("", "serviceaccounts", "impersonate", "robot"), rule(g, "uids", "impersonate", "u1"), rule(g, "userextras/scope", "impersonate", "read"),
	}, ","))
	type headers = map[string][]string
	for _, x := range []struct {
		name    string
		headers headers
		code    int // 403 for impersonate, or another code; 0: the request is authorized as that user
	}{
		{"a user", headers{"Impersonate-User": {"jane"}}, 0},
		{"another user", headers{"Impersonate-User": {"admin"}}, 403},
		{"two users, of which the first counts", headers{"Impersonate-User": {"jane", "admin"}}, 0},
		{"a group", headers{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev"}}, 0},
		{"another group", headers{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev", "system:masters"}}, 403},
		{"a group alone", headers{"Impersonate-Group": {"system:masters"}}, 400},
		{"an account", headers{"Impersonate-User": {"system:serviceaccount:" + s.id + ":robot"}}, 0},
		{"another account", headers{"Impersonate-User": {"system:serviceaccount:" + s.id + ":default"}}, 403},
		{"no valid account", headers{"Impersonate-User": {"system:serviceaccount:" + s.id + ":robot:"}}, 403},
		{"an account without a name", headers{"Impersonate-User": {"system:serviceaccount:" + s.id + ":"}}, 403},
		{"a uid", headers{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"u1"}}, 0},
		{"another uid", headers{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"u2"}}, 403},
		{"a uid alone", headers{"Impersonate-Uid": {"u1"}}, 400},
		{"an extra", headers{"Impersonate-User": {"jane"}, "Impersonate-Extra-Scope": {"read"}}, 0},
		{"an extra in another spelling", headers{"Impersonate-User": {"jane"}, "Impersonate-Extra-Scope": {"read"}, "Impersonate-Extra-%73cope": {"write"}}, 403},
		{"another extra", headers{"Impersonate-User": {"jane"}, "Impersonate-Extra-Other": {"read"}}, 403},
		{"an extra alone", headers{"Impersonate-Extra-Scope": {"read"}}, 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			// All authenticated users may send this review.
			answer := s.people["actor"].Ask(t, cluster.Request{Method: http.MethodPost, Header: x.headers,
				Path: "/apis/" + c.Vocabulary.Group("authorization.") + "/v1/selfsubjectaccessreviews",
				Body: s.names.Replace(`{"apiVersion":"$authorization/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"secrets"}}}`)})
			switch {
			case x.code == 0 && (answer.Code >= 300 || !strings.Contains(answer.Body, `"allowed":false`)):
				t.Errorf("got %d: %.300s", answer.Code, answer.Body)
			case x.code != 0 && answer.Code != x.code, x.code == 403 && !strings.Contains(answer.Body, "cannot impersonate"):
				t.Errorf("got %d, want %d: %.300s", answer.Code, x.code, answer.Body)
			}
		})
	}
	nobody(s, t)
}

// nobody impersonates the anonymous user, who must not have the permissions of
// authenticated users.
func nobody(s *stage, t *testing.T) {
	for _, groups := range [][]string{nil, {"system:unauthenticated"}} {
		user := "jane"
		if groups == nil {
			user = "system:anonymous"
		}
		answer := s.people["actor"].Ask(t, cluster.Request{Method: http.MethodPost,
			Header: map[string][]string{"Impersonate-User": {user}, "Impersonate-Group": groups},
			Path:   s.names.Replace("/apis/$authorization/v1/selfsubjectaccessreviews"),
			Body:   s.names.Replace(`{"apiVersion":"$authorization/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"secrets"}}}`)})
		if answer.Code != http.StatusForbidden || strings.Contains(answer.Body, "impersonate") {
			t.Errorf("as %s in %q: got %d, want a refusal of the request: %.300s", user, groups, answer.Code, answer.Body)
		}
	}
}

// Accounts lets people try to get the tokens of accounts, and the answers of reviews, that
// are not theirs.
func Accounts(t *testing.T, c *cluster.Cluster) {
	s := newStage(t, c)
	s.person("issuer", rule("", "serviceaccounts/token", "create", "mine")+","+rule("", "secrets pods", "create get list"))
	s.person("reader", rule("", "serviceaccounts pods secrets", "get list watch create update patch"))
	s.person("watcher", rule("*", "*", "watch"))
	s.person("asker", rule(c.Vocabulary.Group("authorization."), "localsubjectaccessreviews", "create"))
	const account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"mine"}}`
	s.do(c, "POST /api/v1/namespaces/$id/serviceaccounts", account, 0)
	pod := func(name, account string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"},"spec":{` + account + `"containers":[{"name":"a","image":"a"}]}}`
	}
	s.do(c, "POST /api/v1/namespaces/$id/pods", pod("own", `"serviceAccountName":"mine",`), 0)
	s.do(c, "POST /api/v1/namespaces/$id/pods", pod("other", `"serviceAccountName":"reader",`), 0)
	token := func(metadata, spec string) string {
		return `{"apiVersion":"$authentication/v1","kind":"TokenRequest","metadata":{` + metadata + `},"spec":{` + spec + `}}`
	}
	bound := func(kind, name, uid string) string {
		return token("", `"boundObjectRef":{"apiVersion":"v1","kind":"`+kind+`","name":"`+name+`","uid":"`+uid+`"}`)
	}
	secret := func(name, metadata string) string {
		return `{"apiVersion":"v1","kind":"Secret","type":"$domain/service-account-token","metadata":{"name":"` + name + `"` + metadata + `}}`
	}
	const mine, pods, secrets = "POST /api/v1/namespaces/$id/serviceaccounts/mine/token", "POST /api/v1/namespaces/$id/pods", "POST /api/v1/namespaces/$id/secrets"
	const review = `{"apiVersion":"$authorization/v1","kind":"LocalSubjectAccessReview","metadata":{"namespace":"$id"},"spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"secrets","namespace":"$id"}}}`
	s.try([]attempt{
		{"token", "issuer", mine, token("", ""), 0},
		{"token of another account", "issuer", "POST /api/v1/namespaces/$id/serviceaccounts/reader/token", token("", ""), 403},
		{"token of another account by the body", "issuer", mine, token(`"name":"reader"`, ""), 400},
		{"token of another namespace by the body", "issuer", mine, token(`"namespace":"$system"`, ""), 400},
		{"token without the subresource", "reader", mine, token("", ""), 403},
		{"token through the prefix for watches", "watcher", "GET /api/v1/watch/namespaces/$id/serviceaccounts/mine/token", "", 405},
		{"token for too short", "issuer", mine, token("", `"expirationSeconds":1`), 422},
		{"token for ever", "issuer", mine, token("", `"expirationSeconds":4294967297`), 422},
		{"token bound to a pod", "issuer", mine, bound("Pod", "own", ""), 0},
		{"token bound to a pod that was another", "issuer", mine, bound("Pod", "own", "x"), 409},
		{"token bound to a pod of another account", "issuer", mine, bound("Pod", "other", ""), 400},
		{"token bound to a pod that does not exist", "issuer", mine, bound("Pod", "none", ""), 404},
		{"token bound to a secret that does not exist", "issuer", mine, bound("Secret", "none", ""), 404},
		{"token bound to something else", "issuer", mine, bound("ConfigMap", "none", ""), 400},
		{"token secret of no account", "issuer", secrets, secret("a", ""), 422},
		{"pod of an account that does not exist", "issuer", pods, pod("x", `"serviceAccountName":"none",`), 403},
		{"pod of an account that does not exist, by the old field", "issuer", pods, pod("x", `"serviceAccount":"none",`), 403},
		{"binding of a pod", "issuer", "POST /api/v1/namespaces/$id/pods/own/binding", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"own"},"target":{"kind":"Node","name":"n"}}`, 403},
		{"binding of a pod by the other path", "reader", "POST /api/v1/namespaces/$id/bindings", `{"apiVersion":"v1","kind":"Binding","metadata":{"name":"own"},"target":{"kind":"Node","name":"n"}}`, 403},
		{"node of a pod by an update", "reader", "PATCH /api/v1/namespaces/$id/pods/own", `{"spec":{"nodeName":"n"}}`, 422},
		{"account of a pod by an update", "reader", "PATCH /api/v1/namespaces/$id/pods/own", `{"spec":{"serviceAccountName":"reader"}}`, 422},
		{"status of a pod by an update", "reader", "PATCH /api/v1/namespaces/$id/pods/own/status", `{"status":{"phase":"Failed"}}`, 403},
		{"eviction", "reader", "POST /api/v1/namespaces/$id/pods/own/eviction", `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"own"}}`, 403},
		{"exec through the prefix for watches", "watcher", "GET /api/v1/watch/namespaces/$id/pods/own/exec?command=a", "", 405},
		{"exec", "reader", "GET /api/v1/namespaces/$id/pods/own/exec?command=a", "", 403},
		{"review", "asker", "POST /apis/$authorization/v1/subjectaccessreviews", `{"apiVersion":"$authorization/v1","kind":"SubjectAccessReview","spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"secrets"}}}`, 403},
		{"local review", "asker", "POST /apis/$authorization/v1/namespaces/$id/localsubjectaccessreviews", review, 0},
		{"local review of another namespace", "asker", "POST /apis/$authorization/v1/namespaces/$id/localsubjectaccessreviews",
			strings.Replace(review, `"resource":"secrets","namespace":"$id"`, `"resource":"secrets","namespace":"$system"`, 1), 422},
		{"review in v1beta1", "asker", "POST /apis/$authorization/v1beta1/subjectaccessreviews", `{"apiVersion":"$authorization/v1beta1","kind":"SubjectAccessReview","spec":{"user":"jane","resourceAttributes":{"verb":"get","resource":"secrets"}}}`, 403},
		{"token review", "asker", "POST /apis/$authentication/v1/tokenreviews", `{"apiVersion":"$authentication/v1","kind":"TokenReview","spec":{"token":"x"}}`, 403},
	})
	s.do(s.people["issuer"], "POST /api/v1/namespaces/$id/pods", pod("both", `"serviceAccount":"reader","serviceAccountName":"mine",`), 0)
	spec := s.object("/api/v1/namespaces/$id/pods/both")["spec"].(map[string]any)
	if spec["serviceAccount"] != "mine" || spec["serviceAccountName"] != "mine" {
		t.Errorf("a pod with two accounts runs as %v and %v", spec["serviceAccountName"], spec["serviceAccount"])
	}
}
