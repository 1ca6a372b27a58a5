package attack

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// Actor is a user who sends requests.
type Actor struct {
	*cluster.Cluster
	target *Target
}

// As returns an actor with a bearer token; empty is anonymous.
func (t *Target) As(token string) *Actor {
	c := *t.Admin
	c.Token = token
	return &Actor{&c, t}
}

// Root returns the administrator.
func (t *Target) Root() *Actor { return t.As(t.Admin.Token) }

// Send sends one request with a JSON body and returns the response. A server error is
// counted as unexpected; see Provoke.
func (a *Actor) Send(ctx context.Context, method, path, body string) (cluster.Answer, error) {
	return a.Do(ctx, cluster.Request{Method: method, Path: path, Body: body})
}

// Do is Send for any request.
func (a *Actor) Do(ctx context.Context, r cluster.Request) (cluster.Answer, error) {
	answer, err := a.Cluster.Do(ctx, r)
	if err == nil && answer.Code >= http.StatusInternalServerError {
		a.target.tally.add(fmt.Sprintf("%s %s: %d %.160s", r.Method, r.Path, answer.Code, answer.Body))
	}
	return answer, err
}

// Provoke is Do for requests for which a server error is acceptable.
func (a *Actor) Provoke(ctx context.Context, r cluster.Request) (cluster.Answer, error) {
	return a.Cluster.Do(ctx, r)
}

// Must sends a request that has to succeed, and decodes the response unless into is nil.
func (a *Actor) Must(ctx context.Context, r cluster.Request, into any) error {
	answer, err := a.Do(ctx, r)
	if err != nil {
		return err
	}
	if answer.Code/100 != 2 {
		return fmt.Errorf("%s %s: got %d: %.300s", r.Method, r.Path, answer.Code, answer.Body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal([]byte(answer.Body), into)
}

// Create creates an object in a collection, which has to succeed.
func (a *Actor) Create(ctx context.Context, path, body string) error {
	return a.Must(ctx, cluster.Request{Method: http.MethodPost, Path: path, Body: body}, nil)
}

// Unique returns a name that no other trial uses.
func Unique(prefix string) string { return prefix + "-" + strings.ToLower(rand.Text()[:10]) }

// Namespace creates a namespace with a unique name and returns the name.
func (t *Target) Namespace(ctx context.Context) (string, error) {
	name := Unique("attack")
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q,"labels":{"attack":%q}}}`, name, name)
	return name, t.Root().Create(ctx, "/api/v1/namespaces", body)
}

// User is a user with a valid token and a namespace of their own.
type User struct {
	*Actor
	Name, Account, Namespace string
}

// User creates a service account with a token and a ClusterRoleBinding for rules, which are
// JSON as in a ClusterRole. Empty rules grant nothing.
func (t *Target) User(ctx context.Context, rules string) (*User, error) {
	namespace, err := t.Namespace(ctx)
	if err != nil {
		return nil, err
	}
	accounts, root := "/api/v1/namespaces/"+namespace+"/serviceaccounts", t.Root()
	if err := root.Create(ctx, accounts, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"intruder"}}`); err != nil {
		return nil, err
	}
	if rules != "" {
		if err := t.grant(ctx, namespace, rules); err != nil {
			return nil, err
		}
	}
	var answer struct{ Status struct{ Token string } }
	request := cluster.Request{Method: http.MethodPost, Path: accounts + "/intruder/token",
		Body: fmt.Sprintf(`{"apiVersion":%q,"kind":"TokenRequest","spec":{}}`, t.Admin.Vocabulary.Group("authentication.")+"/v1")}
	if err := root.Must(ctx, request, &answer); err != nil {
		return nil, err
	}
	t.tally.issued(answer.Status.Token)
	u := &User{t.As(answer.Status.Token), "system:serviceaccount:" + namespace + ":intruder", "intruder", namespace}
	if rules == "" {
		return u, nil
	}
	return u, u.awaitRules(ctx)
}

func (t *Target) grant(ctx context.Context, namespace, rules string) error {
	group := t.Admin.Vocabulary.Group("rbac.authorization.")
	role := fmt.Sprintf(`{"apiVersion":%q,"kind":"ClusterRole","metadata":{"name":%q},"rules":[%s,%s]}`,
		group+"/v1", namespace, rules, Rule("get", namespace, "marks"))
	if err := t.Root().Create(ctx, "/apis/"+group+"/v1/clusterroles", role); err != nil {
		return err
	}
	binding := fmt.Sprintf(`{"apiVersion":%q,"kind":"ClusterRoleBinding","metadata":{"name":%q},"roleRef":{"apiGroup":%q,"kind":"ClusterRole","name":%q},
		"subjects":[{"kind":"ServiceAccount","name":"intruder","namespace":%q}]}`, group+"/v1", namespace, group, namespace, namespace)
	return t.Root().Create(ctx, "/apis/"+group+"/v1/clusterrolebindings", binding)
}

// awaitRules waits until authorization applies the user's rules.
func (u *User) awaitRules(ctx context.Context) error {
	group := u.Vocabulary.Group("authorization.")
	body := fmt.Sprintf(`{"apiVersion":%q,"kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","group":%q,"resource":"marks"}}}`,
		group+"/v1", u.Namespace)
	return Eventually(ctx, 10*time.Second, "the rules of a new user are in force", func() (bool, error) {
		var review struct {
			Status struct{ Allowed bool }
		}
		err := u.Must(ctx, cluster.Request{Method: http.MethodPost, Path: "/apis/" + group + "/v1/selfsubjectaccessreviews", Body: body}, &review)
		return review.Status.Allowed, err
	})
}

// Rule returns one rule of a role.
func Rule(verbs, groups, resources string) string {
	list := func(text string) string { return `["` + strings.ReplaceAll(text, ",", `","`) + `"]` }
	return fmt.Sprintf(`{"verbs":%s,"apiGroups":%s,"resources":%s}`, list(verbs), list(groups), list(resources))
}

// Eventually waits until a condition holds or returns an error, for at most limit.
func Eventually(ctx context.Context, limit time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticks := time.NewTicker(50 * time.Millisecond)
	defer ticks.Stop()
	for {
		if yes, err := holds(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s", limit, what)
		case <-ticks.C:
		}
	}
}

// Wait waits for a time, or until the context ends.
func Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// tally collects unexpected server errors, and the tokens that must not be in logs.
type tally struct {
	mu     sync.Mutex
	count  int
	first  []string
	tokens []string
}

func (t *tally) issued(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens = append(t.tokens, token)
}

// leaked reports whether a text contains one of the tokens.
func (t *tally) leaked(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.tokens, func(token string) bool { return strings.Contains(text, token) })
}

func (t *tally) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count++; len(t.first) < 20 {
		t.first = append(t.first, line)
	}
}

func (t *tally) read() (int, []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count, append([]string(nil), t.first...)
}
