// Package withdrawal holds the end-to-end bodies about rights and identities that end: what
// is open ends too.
package withdrawal

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// What is withdrawn ends within a second, and the entry of a file within two. What it took is in the
// log of the test. The limits are for busy machines.
const (
	// limit is how long a watch may last after its caller may no longer make it. If the front door
	// learned of no change, it would last for thirty seconds.
	limit = 10 * time.Second
	// refusal is how long new requests may be answered as before. If authn or the front door kept an
	// answer, it would be for five seconds.
	refusal = 4 * time.Second
	// patience is how long a new right may take to be usable.
	patience = 30 * time.Second
)

// scene is a namespace with a user for each case. Writes go to the first front door.
type scene struct {
	doors     []*cluster.Cluster
	namespace string
	rbac      string // path of the group version
}

// Watches opens watches at every front door, with every kind of credentials, and takes away in
// turn all that allows them. csr-signer publishes what was revoked at a host and port.
func Watches(t *testing.T, publisher string, doors ...*cluster.Cluster) {
	s := &scene{doors: doors, namespace: "withdrawn", rbac: "/apis/" + doors[0].Vocabulary.Group("rbac.authorization.") + "/v1"}
	s.must(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"withdrawn"}}`)
	t.Run("Policy", s.policy)
	t.Run("Impersonation", s.impersonation)
	t.Run("Accounts", s.accounts)
	t.Run("Revocations", s.revocations)
	t.Run("Certificates", func(t *testing.T) { s.certificates(t, publisher) })
	t.Run("File", s.file)
}

func (s *scene) must(t *testing.T, method, path, body string) cluster.Answer {
	t.Helper()
	kind := ""
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(patience); ; <-ticks.C {
		a := s.doors[0].Ask(t, cluster.Request{Method: method, Path: path, Body: body, Type: kind})
		if a.Code < 300 {
			return a
		}
		// The account of a new namespace takes a moment.
		if a.Code != http.StatusForbidden && a.Code != http.StatusNotFound || time.Now().After(deadline) {
			t.Fatalf("%s %s: %d %s", method, path, a.Code, a.Body)
		}
	}
}

func (s *scene) in(rest string) string { return "/api/v1/namespaces/" + s.namespace + "/" + rest }

// grant lets a subject watch and read ConfigMaps of the namespace, by a role and a binding with
// this name.
func (s *scene) grant(t *testing.T, name, kind, subject string) {
	t.Helper()
	group := s.doors[0].Vocabulary.Group("rbac.authorization.")
	s.must(t, "POST", s.rbac+"/namespaces/"+s.namespace+"/roles", fmt.Sprintf(
		`{"metadata":{"name":%q},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["watch","get","list"]}]}`, name))
	api, of := group, ""
	if kind == "ServiceAccount" {
		api, of = "", s.namespace
	}
	s.must(t, "POST", s.rbac+"/namespaces/"+s.namespace+"/rolebindings", fmt.Sprintf(
		`{"metadata":{"name":%q},"roleRef":{"apiGroup":%q,"kind":"Role","name":%q},"subjects":[{"kind":%q,"apiGroup":%q,"name":%q,"namespace":%q}]}`,
		name, group, name, kind, api, subject, of))
}

// watches opens a watch at every front door. The channel gets the last line of each.
func (s *scene) watches(t *testing.T, token string, header http.Header) <-chan string {
	t.Helper()
	return s.watchesOf(t, header, func(door cluster.Cluster) *cluster.Cluster {
		if token != "" {
			door.Token = token
		}
		return &door
	})
}

// watchesOf opens them for the user that each front door is reached as.
func (s *scene) watchesOf(t *testing.T, header http.Header, user func(cluster.Cluster) *cluster.Cluster) <-chan string {
	t.Helper()
	last, ticks := make(chan string, len(s.doors)), time.NewTicker(20*time.Millisecond)
	defer ticks.Stop()
	for _, door := range s.doors {
		as := user(*door)
		var response *http.Response
		for deadline := time.Now().Add(patience); ; <-ticks.C {
			var err error
			response, err = as.Send(t.Context(), cluster.Request{Path: s.in("configmaps?watch=true&resourceVersion=0"), Header: header})
			if err != nil {
				t.Fatal(err)
			}
			if response.StatusCode == http.StatusOK {
				break
			}
			_ = response.Body.Close()
			if time.Now().After(deadline) {
				t.Fatalf("the watch is answered with %s", response.Status)
			}
		}
		go func() {
			defer response.Body.Close()
			line := ""
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				line = lines.Text()
			}
			last <- line
		}()
	}
	return last
}

// ends waits until every watch has ended, with a code.
func (s *scene) ends(t *testing.T, what string, watches <-chan string, code int) {
	t.Helper()
	began := time.Now()
	for range s.doors {
		select {
		case line := <-watches:
			var event struct {
				Type   string
				Object cluster.Status
			}
			if json.Unmarshal([]byte(line), &event) != nil || event.Type != "ERROR" || event.Object.Code != code {
				t.Errorf("%s: the last event is %s", what, line)
			}
		case <-time.After(limit):
			t.Errorf("%s: the watch is open after %v", what, limit)
		}
	}
	t.Logf("%s: all watches ended after %v", what, time.Since(began))
}

// stays fails if a watch ends.
func (s *scene) stays(t *testing.T, what string, watches <-chan string) {
	t.Helper()
	select {
	case line := <-watches:
		t.Errorf("%s: the watch ended: %s", what, line)
	default:
	}
}

func (s *scene) policy(t *testing.T) {
	bindings, roles := s.rbac+"/namespaces/"+s.namespace+"/rolebindings/", s.rbac+"/namespaces/"+s.namespace+"/roles/"
	user := func(name string) http.Header { return http.Header{"Impersonate-User": {name}} }
	s.grant(t, "other", "User", "other")
	other := s.watches(t, "", user("other"))
	for name, withdraw := range map[string]func(string){
		"binding-removed": func(name string) { s.must(t, "DELETE", bindings+name, "") },
		"role-removed":    func(name string) { s.must(t, "DELETE", roles+name, "") },
		"role-narrowed": func(name string) {
			s.must(t, "PATCH", roles+name, `{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}]}`)
		},
		"subject-removed": func(name string) { s.must(t, "PATCH", bindings+name, `{"subjects":[]}`) },
	} {
		s.grant(t, name, "User", name)
		watches := s.watches(t, "", user(name))
		withdraw(name)
		s.ends(t, name, watches, http.StatusForbidden)
	}
	s.grant(t, "group", "Group", "crew")
	crew := s.watches(t, "", http.Header{"Impersonate-User": {"someone"}, "Impersonate-Group": {"crew"}})
	s.must(t, "DELETE", bindings+"group", "")
	s.ends(t, "the binding of a group", crew, http.StatusForbidden)
	s.stays(t, "a user without a change", other)
	s.must(t, "DELETE", bindings+"other", "")
	s.ends(t, "the last binding", other, http.StatusForbidden)
}

// impersonation takes the right to impersonate from a caller; the impersonated user keeps what
// is its own.
func (s *scene) impersonation(t *testing.T) {
	s.must(t, "POST", s.in("serviceaccounts"), `{"metadata":{"name":"actor"}}`)
	s.grant(t, "played", "User", "played")
	s.act(t, "plain", `{"apiGroups":[""],"resources":["users"],"verbs":["impersonate"],"resourceNames":["played"]}`)
	watches := s.watches(t, s.token(t, "actor", ""), http.Header{"Impersonate-User": {"played"}})
	s.must(t, "DELETE", s.rbac+"/clusterrolebindings/withdrawn-plain", "")
	s.ends(t, "the right to impersonate", watches, http.StatusForbidden)
	if s.doors[0].Vocabulary != vocabulary.K8s() {
		return // release 1.21 has no constrained impersonation
	}
	s.act(t, "user", `{"apiGroups":["`+s.doors[0].Vocabulary.Group("authentication.")+`"],"resources":["users"],"verbs":["impersonate:user-info"],"resourceNames":["played"]}`)
	s.act(t, "on", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["impersonate-on:user-info:watch"]}`)
	watches = s.watches(t, s.token(t, "actor", ""), http.Header{"Impersonate-User": {"played"}})
	s.must(t, "DELETE", s.rbac+"/clusterrolebindings/withdrawn-on", "")
	s.ends(t, "the right to watch while impersonating", watches, http.StatusForbidden)
}

// act gives the account actor a rule.
func (s *scene) act(t *testing.T, name, rule string) {
	t.Helper()
	s.must(t, "POST", s.rbac+"/clusterroles", fmt.Sprintf(`{"metadata":{"name":"withdrawn-%s"},"rules":[%s]}`, name, rule))
	s.must(t, "POST", s.rbac+"/clusterrolebindings", fmt.Sprintf(`{"metadata":{"name":"withdrawn-%s"},"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":"withdrawn-%s"},
		"subjects":[{"kind":"ServiceAccount","name":"actor","namespace":%q}]}`, name, s.doors[0].Vocabulary.Group("rbac.authorization."), name, s.namespace))
}

// token returns a token of an account, bound to an object if there is one.
func (s *scene) token(t *testing.T, account, bound string) string {
	t.Helper()
	spec := `{}`
	if bound != "" {
		spec = fmt.Sprintf(`{"boundObjectRef":%s}`, bound)
	}
	var request struct{ Status struct{ Token string } }
	s.must(t, "POST", s.in("serviceaccounts/"+account+"/token"), fmt.Sprintf(`{"spec":%s}`, spec)).Decode(t, &request)
	return request.Status.Token
}

// accounts deletes what tokens are bound to. The tokens are refused at once, also where they are
// cached.
func (s *scene) accounts(t *testing.T) {
	kinds := map[string]string{"account": "", "secret": "Secret", "pod": "Pod"}
	if s.doors[0].Vocabulary == vocabulary.K8s() {
		kinds["node"] = "Node" // release 1.21 does not bind tokens to nodes
	}
	for name, kind := range kinds {
		s.must(t, "POST", s.in("serviceaccounts"), fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		s.grant(t, name, "ServiceAccount", name)
		bound, path := "", s.in("serviceaccounts/"+name)
		switch kind {
		case "Secret":
			s.must(t, "POST", s.in("secrets"), `{"metadata":{"name":"bound"}}`)
			bound, path = `{"apiVersion":"v1","kind":"Secret","name":"bound"}`, s.in("secrets/bound")
		case "Pod":
			s.must(t, "POST", s.in("pods"), `{"metadata":{"name":"bound"},"spec":{"serviceAccountName":"pod","containers":[{"name":"a","image":"a:1"}]}}`)
			bound, path = `{"apiVersion":"v1","kind":"Pod","name":"bound"}`, s.in("pods/bound?gracePeriodSeconds=0")
		}
		if kind == "Node" {
			node := s.namespace + "-bound"
			s.must(t, "POST", "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q}}`, node))
			bound, path = fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","name":%q}`, node), "/api/v1/nodes/"+node
		}
		token := s.token(t, name, bound)
		if kind == "Node" {
			s.namesNode(t, token, s.namespace+"-bound")
		}
		watches := s.watches(t, token, nil)
		s.must(t, "DELETE", path, "")
		deleted := time.Now()
		for _, door := range s.doors {
			as := *door
			as.Token = token
			for as.Ask(t, cluster.Request{Path: s.in("configmaps")}).Code != http.StatusUnauthorized {
				if time.Since(deleted) > refusal {
					t.Fatalf("%s: the token is accepted %v after the deletion", name, time.Since(deleted))
				}
			}
		}
		t.Logf("%s: the token was refused %v after the deletion", name, time.Since(deleted))
		s.ends(t, name, watches, http.StatusUnauthorized)
	}
}

// namesNode asks who has a token: the extra values name the node that it is bound to.
func (s *scene) namesNode(t *testing.T, token, node string) {
	t.Helper()
	as, v := *s.doors[0], s.doors[0].Vocabulary
	as.Token = token
	var review struct {
		Status struct {
			UserInfo struct{ Extra map[string][]string }
		}
	}
	as.Ask(t, cluster.Request{Method: "POST", Path: "/apis/" + v.Group("authentication.") + "/v1/selfsubjectreviews", Body: `{}`}).Decode(t, &review)
	extra := review.Status.UserInfo.Extra
	name, uid := extra[v.Qualified("authentication", "node-name")], extra[v.Qualified("authentication", "node-uid")]
	if len(name) != 1 || name[0] != node || len(uid) != 1 {
		t.Errorf("the user of a token that is bound to the node %s has %v", node, extra)
	}
}

// file replaces the file of static tokens by one without a token, and one with other groups.
func (s *scene) file(t *testing.T) {
	path := filepath.Join(s.doors[0].Dir, "tokens.csv")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(lines ...string) {
		t.Helper()
		text := strings.TrimRight(string(before), "\n") + "\n" + strings.Join(lines, "\n") + "\n"
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	s.grant(t, "file", "Group", "filed")
	replace(`leaving,leaving,1,filed`, `moving,moving,2,filed`, `staying,staying,3,filed`)
	leaving, moving, staying := s.watches(t, "leaving", nil), s.watches(t, "moving", nil), s.watches(t, "staying", nil)
	replace(`moving,moving,2,elsewhere`, `staying,staying,3,filed`)
	s.ends(t, "the entry of the file", leaving, http.StatusUnauthorized)
	s.ends(t, "the group in the file", moving, http.StatusForbidden)
	s.stays(t, "the entry that is still there", staying)
	replace()
	s.ends(t, "the last entry", staying, http.StatusUnauthorized)
}

// revocations refuses an account by its name, and all of a namespace by their group, at once and
// also where their tokens are cached; and no longer once the Revocation is gone.
func (s *scene) revocations(t *testing.T) {
	const path = "/apis/access.portico.dev/v1/revocations"
	for _, name := range []string{"revoked", "trusted"} {
		s.must(t, "POST", s.in("serviceaccounts"), fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
		s.grant(t, name, "ServiceAccount", name)
	}
	revoked, trusted := s.token(t, "revoked", ""), s.token(t, "trusted", "")
	other := s.watches(t, trusted, nil)
	for name, spec := range map[string]string{
		"by-user":  fmt.Sprintf(`"user":"system:serviceaccount:%s:revoked"`, s.namespace),
		"by-group": fmt.Sprintf(`"group":"system:serviceaccounts:%s","issuedBefore":%q`, s.namespace, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)),
	} {
		watches := s.watches(t, revoked, nil)
		s.must(t, "POST", path, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s,"reason":"lost"}}`, name, spec))
		s.answers(t, name, revoked, http.StatusUnauthorized)
		s.ends(t, name, watches, http.StatusUnauthorized)
		if name == "by-user" {
			s.answers(t, "another account", trusted, http.StatusOK)
		} else {
			s.ends(t, "another account", other, http.StatusUnauthorized)
			other = nil
		}
		s.must(t, "DELETE", path+"/"+name, "")
		s.answers(t, "after "+name, revoked, http.StatusOK)
		if other == nil {
			other = s.watches(t, trusted, nil)
		}
	}
	s.refusedRevocations(t, path)
}

// answers waits until every front door answers a token with a code.
func (s *scene) answers(t *testing.T, what, token string, code int) {
	t.Helper()
	began := time.Now()
	for _, door := range s.doors {
		as := *door
		as.Token = token
		for got := 0; got != code; {
			if got = as.Ask(t, cluster.Request{Path: s.in("configmaps")}).Code; got != code && time.Since(began) > refusal {
				t.Fatalf("%s: %d after %v", what, got, time.Since(began))
			}
		}
	}
	t.Logf("%s: all front doors answer %d after %v", what, code, time.Since(began))
}

// refusedRevocations writes Revocations that are not valid, and some that their writer may not
// write.
func (s *scene) refusedRevocations(t *testing.T, path string) {
	group := s.doors[0].Vocabulary.Group("rbac.authorization.")
	s.must(t, "POST", s.rbac+"/clusterroles", `{"metadata":{"name":"revoker"},"rules":[{"apiGroups":["access.portico.dev"],"resources":["revocations"],"verbs":["create"]},
		{"apiGroups":["access.portico.dev"],"resources":["users"],"verbs":["revoke"],"resourceNames":["system:node:lost"]}]}`)
	s.must(t, "POST", s.rbac+"/clusterrolebindings", fmt.Sprintf(`{"metadata":{"name":"revoker"},"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":"revoker"},
		"subjects":[{"kind":"User","apiGroup":%q,"name":"rita"}]}`, group, group))
	created := s.doors[0].Vocabulary.Behaviour.CreatedStatus
	for spec, want := range map[string]int{
		`{"user":"jane","reason":"left"}`:                    created,
		`{"user":"system:node:lost","reason":"lost"}`:        created,
		`{"user":"system:node:other","reason":"lost"}`:       http.StatusForbidden,
		`{"group":"system:masters","reason":"oops"}`:         http.StatusForbidden,
		`{"user":"jane"}`:                                    http.StatusUnprocessableEntity,
		`{"user":"jane","serial":"1","reason":"lost"}`:       http.StatusUnprocessableEntity,
		`{"serial":"0x1","reason":"lost"}`:                   http.StatusUnprocessableEntity,
		`{"user":"jane","until":"tomorrow","reason":"lost"}`: http.StatusBadRequest,
	} {
		a := s.doors[0].Ask(t, cluster.Request{Method: http.MethodPost, Path: path + "?dryRun=All", Header: http.Header{"Impersonate-User": {"rita"}},
			Body: `{"metadata":{"name":"r"},"spec":` + spec + `}`})
		if a.Code != want {
			t.Errorf("%s: %d %s, want %d", spec, a.Code, a.Body, want)
		}
	}
}
