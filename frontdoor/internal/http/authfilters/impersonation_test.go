package authfilters

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// rights allows what it lists, "*" everything, and records the questions.
type rights struct {
	allowed   []string
	requested []string
	of        []services.Attributes // of the questions
	denied    func(services.Attributes) bool
	broken    string // a verb, or a question, about which it fails
}

func (g *rights) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Group != "" {
		resource += "." + a.Group
	}
	q := strings.TrimSpace(strings.Join([]string{a.Verb, resource + a.Path, a.Namespace, a.Name}, " "))
	g.requested, g.of = append(g.requested, q), append(g.of, a)
	if g.broken != "" && (a.Verb == g.broken || q == g.broken) {
		return services.Decision{}, services.Unavailable("broken")
	}
	return services.Decision{Allowed: (slices.Contains(g.allowed, q) || slices.Contains(g.allowed, "*")) && !g.denies(a)}, nil
}

func (g *rights) denies(a services.Attributes) bool { return g.denied != nil && g.denied(a) }

func (g *rights) Rules(context.Context, services.RulesRequest) (services.Rules, error) {
	return services.Rules{}, nil
}

func (g *rights) control(since bool) *Control {
	c := &Control{Authz: g, Log: slog.New(slog.DiscardHandler), Vocabulary: vocabulary.K8s()}
	if since {
		c.Constrained = NewConstrained(true, prometheus.NewRegistry())
	}
	return c
}

// impersonates passes the stage with a GET of pods.
func impersonates(t *testing.T, c *Control, caller services.UserInfo, h http.Header) (*request.Request, error) {
	t.Helper()
	r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), Verb: "list", User: caller, Caller: caller,
		Type: &catalogue.Type{Version: "v1", Resource: "pods"}, Namespace: "ns", Audit: &audit.Record{}}
	r.Header = h.Clone()
	reached := false
	err := c.Impersonated(func(http.ResponseWriter, *request.Request) error { reached = true; return nil })(httptest.NewRecorder(), r)
	if reached != (err == nil) {
		t.Fatalf("%v: passed: %v, %v", h, reached, err)
	}
	for name := range r.Header {
		if reached && strings.HasPrefix(name, "Impersonate-") {
			t.Errorf("the header %s is left", name)
		}
	}
	return r, err
}

// TestImpersonationHeaders: plain impersonation needs a right for each part of the identity.
func TestImpersonationHeaders(t *testing.T) {
	const g = ".authentication.k8s.io"
	for _, c := range []struct {
		header    http.Header
		requested []string
		groups    string
	}{
		{http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"dev", "ops"}, "Impersonate-Extra-Acme.com%2fproject": {"p1", "p2"}},
			[]string{"impersonate users  jane", "impersonate groups  dev", "impersonate groups  ops", "impersonate userextras/acme.com/project" + g + "  p1", "impersonate userextras/acme.com/project" + g + "  p2"}, "dev ops system:authenticated"},
		{http.Header{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"u1"}, "Impersonate-Extra-Scope": {"a"}, "Impersonate-Extra-%73cope": {"b"}},
			[]string{"impersonate users  jane", "impersonate uids" + g + "  u1", "impersonate userextras/scope" + g + "  b", "impersonate userextras/scope" + g + "  a"}, "system:authenticated"},
		{http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:unauthenticated"}}, []string{"impersonate users  jane", "impersonate groups  system:unauthenticated"}, "system:unauthenticated"},
		{http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:authenticated"}}, []string{"impersonate users  jane", "impersonate groups  system:authenticated"}, "system:authenticated"},
		{http.Header{"Impersonate-User": {"system:anonymous"}}, []string{"impersonate users  system:anonymous"}, "system:unauthenticated"},
		{http.Header{"Impersonate-User": {"system:anonymous"}, "Impersonate-Group": {"system:unauthenticated"}}, []string{"impersonate users  system:anonymous", "impersonate groups  system:unauthenticated"}, "system:unauthenticated"},
		{http.Header{"Impersonate-User": {"system:serviceaccount:a:robot"}}, []string{"impersonate serviceaccounts a robot"}, "system:serviceaccounts system:serviceaccounts:a system:authenticated"},
		{http.Header{"Impersonate-User": {"system:serviceaccount:NS:robot"}}, []string{"impersonate users  system:serviceaccount:NS:robot"}, "system:authenticated"},
		{http.Header{"Impersonate-User": {"system:serviceaccount:a:robot:more"}}, []string{"impersonate users  system:serviceaccount:a:robot:more"}, "system:authenticated"},
		{http.Header{"Impersonate-User": {"system:serviceaccount:a"}}, []string{"impersonate users  system:serviceaccount:a"}, "system:authenticated"},
		{http.Header{"Impersonate-User": {"system:node:n1"}}, []string{"impersonate users  system:node:n1"}, "system:authenticated"},
	} {
		z := &rights{allowed: []string{"*"}}
		r, err := impersonates(t, z.control(false), services.UserInfo{Name: "sam"}, c.header)
		if err != nil || !r.Impersonated || r.Constraint != "" || r.User.Name != c.header.Get("Impersonate-User") || r.Caller.Name != "sam" {
			t.Fatalf("%v: %v, %+v", c.header, err, r.User)
		}
		if !slices.Equal(z.requested, c.requested) || strings.Join(r.User.Groups, " ") != c.groups {
			t.Errorf("%v: requested %q, groups %q", c.header, z.requested, r.User.Groups)
		}
		for n := range c.requested { // each right alone is missing
			z := &rights{allowed: slices.Delete(slices.Clone(c.requested), n, n+1)}
			if _, err := impersonates(t, z.control(false), services.UserInfo{Name: "sam"}, c.header); !services.IsReason(err, services.ReasonForbidden) {
				t.Errorf("%v without %q: %v", c.header, c.requested[n], err)
			}
		}
	}
	for _, h := range []http.Header{{"Impersonate-Group": {"a"}}, {"Impersonate-Uid": {"a"}}, {"Impersonate-Extra-X": {"a"}}, {"Impersonate-User": {"u"}, "Impersonate-Extra-%Zz": {"a"}}} {
		if _, err := impersonates(t, (&rights{allowed: []string{"*"}}).control(true), services.UserInfo{Name: "sam"}, h); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%v: got %v, want BadRequest", h, err)
		}
	}
}

// TestConstrainedImpersonation: each mode needs all of its rights and nothing more, and gives an
// identity that the caller cannot widen.
func TestConstrainedImpersonation(t *testing.T) {
	const g = ".authentication.k8s.io"
	on := services.UserInfo{Name: "system:serviceaccount:a:agent", Extra: map[string][]string{
		"authentication.kubernetes.io/node-name": {"n1"}, "authentication.kubernetes.io/pod-name": {"p"}}}
	for what, c := range map[string]struct {
		caller services.UserInfo
		header http.Header
		rights []string
		verb   string
		groups string
	}{
		"a user": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane"}, "impersonate:user-info", "system:authenticated"},
		"all of a user": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Uid": {"7"}, "Impersonate-Group": {"dev"}, "Impersonate-Extra-Acme.io/scope": {"a"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane", "impersonate:user-info uids" + g + "  7",
				"impersonate:user-info groups" + g + "  dev", "impersonate:user-info userextras/acme.io/scope" + g + "  a"}, "impersonate:user-info", "dev system:authenticated"},
		"any of many groups": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"a", "b", "c", "d"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane", "impersonate:user-info groups" + g + "  *"}, "impersonate:user-info", "a b c d system:authenticated"},
		"each of many groups": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"a", "b", "c", "d"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane", "impersonate:user-info groups" + g + "  a", "impersonate:user-info groups" + g + "  b",
				"impersonate:user-info groups" + g + "  c", "impersonate:user-info groups" + g + "  d"}, "impersonate:user-info", "a b c d system:authenticated"},
		"any of many extra values": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-Acme.io/scope": {"a", "b", "c", "d"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane", "impersonate:user-info userextras/*" + g + "  *"}, "impersonate:user-info", "system:authenticated"},
		"a service account": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"system:serviceaccount:b:robot"}},
			[]string{"impersonate-on:serviceaccount:list pods ns", "impersonate:serviceaccount serviceaccounts" + g + " b robot"}, "impersonate:serviceaccount",
			"system:serviceaccounts system:serviceaccounts:b system:authenticated"},
		"any node": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"system:node:n1"}},
			[]string{"impersonate-on:arbitrary-node:list pods ns", "impersonate:arbitrary-node nodes" + g + "  n1"}, "impersonate:arbitrary-node", "system:nodes system:authenticated"},
		"the node of the caller": {on, http.Header{"Impersonate-User": {"system:node:n1"}},
			[]string{"impersonate-on:associated-node:list pods ns", "impersonate:associated-node nodes" + g + "  *"}, "impersonate:associated-node", "system:nodes system:authenticated"},
		"the anonymous user": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"system:anonymous"}},
			[]string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  system:anonymous"}, "impersonate:user-info", "system:unauthenticated"},
		"plain": {services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:masters"}},
			[]string{"impersonate users  jane", "impersonate groups  system:masters"}, "", "system:masters system:authenticated"},
		"a node, plain": {on, http.Header{"Impersonate-User": {"system:node:n1"}}, []string{"impersonate users  system:node:n1"}, "", "system:authenticated"},
	} {
		z := &rights{allowed: c.rights}
		control := z.control(true)
		r, err := impersonates(t, control, c.caller, c.header)
		if err != nil || r.User.Name != c.header.Get("Impersonate-User") || r.Constraint != c.verb || strings.Join(r.User.Groups, " ") != c.groups {
			t.Errorf("%s: %v, %q, %+v; requested %q", what, err, r.Constraint, r.User, z.requested)
		}
		if decision := r.Audit.Annotations()["authorization.k8s.io/decision"]; decision != "allow" {
			t.Errorf("%s: the decision is %q", what, decision)
		}
		z.requested, z.of = nil, nil
		if _, err := impersonates(t, control, c.caller, c.header); err != nil || c.verb == "" && len(z.requested) != len(c.rights) {
			t.Errorf("%s: the second time: %v, requested %q", what, err, z.requested)
		}
		if c.verb == "impersonate:associated-node" {
			for _, a := range z.of {
				if u := a.User; len(u.Extra) != 1 || strings.Join(u.Extra["authentication.kubernetes.io/associated-node-keys"], " ") != "authentication.kubernetes.io/node-name authentication.kubernetes.io/pod-name" {
					t.Errorf("%s: requested about %+v", what, a.User)
				}
			}
		}
		for n := range c.rights {
			z := &rights{allowed: slices.Delete(slices.Clone(c.rights), n, n+1)}
			r, err := impersonates(t, z.control(true), c.caller, c.header)
			if !services.IsReason(err, services.ReasonForbidden) || r.User.Name != c.caller.Name {
				t.Errorf("%s without %q: %v", what, c.rights[n], err)
			}
			if c.verb != "" { // without the feature the rights mean nothing
				if _, err := impersonates(t, (&rights{allowed: c.rights}).control(false), c.caller, c.header); err == nil {
					t.Errorf("%s: allowed without the feature", what)
				}
			}
		}
	}
}

// TestConstrainedLimits: all constrained rights together do not give what no mode allows, and the
// error of a caller without any right names the constrained one.
func TestConstrainedLimits(t *testing.T) {
	everything := (&rights{}).control(true)
	everything.Authz = constrainedOnly{&rights{}}
	for what, c := range map[string]struct {
		header http.Header
		want   string
	}{
		"system:masters":               {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"system:masters"}}, "impersonating the system:masters group is not allowed"},
		"masters among many":           {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"a", "b", "c", "d", "system:masters"}}, "system:masters"},
		"an empty group":               {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {""}}, "empty string group"},
		"an empty value":               {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-Acme.io/a": {""}}, "empty string value"},
		"an empty key":                 {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-": {"a"}}, "empty string key"},
		"a key in capitals":            {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-Acme.io/%41": {"a"}}, "non-lowercase"},
		"a key without a domain":       {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-A": {"a"}}, "domain-prefixed"},
		"an invalid key":               {http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-A*": {"a"}}, "invalid key"},
		"groups of a service account":  {http.Header{"Impersonate-User": {"system:serviceaccount:a:b"}, "Impersonate-Group": {"x"}}, `cannot impersonate resource "serviceaccounts"`},
		"the UID of a service account": {http.Header{"Impersonate-User": {"system:serviceaccount:a:b"}, "Impersonate-Uid": {"x"}}, `cannot impersonate resource "serviceaccounts"`},
		"groups of a node":             {http.Header{"Impersonate-User": {"system:node:n1"}, "Impersonate-Group": {"system:masters"}}, `cannot impersonate resource "users"`},
		"extra values of a node":       {http.Header{"Impersonate-User": {"system:node:n1"}, "Impersonate-Extra-A": {"b"}}, `cannot impersonate resource "users"`},
	} {
		_, err := impersonates(t, everything, services.UserInfo{Name: "sam"}, c.header)
		if !services.IsReason(err, services.ReasonForbidden) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	nodes := func(names ...string) map[string][]string {
		return map[string][]string{"authentication.kubernetes.io/node-name": names}
	}
	for what, caller := range map[string]services.UserInfo{
		"on another node":      {Name: "system:serviceaccount:a:b", Extra: nodes("n2")},
		"on two nodes":         {Name: "system:serviceaccount:a:b", Extra: nodes("n1", "n1")},
		"on no node":           {Name: "system:serviceaccount:a:b"},
		"no service account":   {Name: "sam", Extra: nodes("n1")},
		"another group's name": {Name: "system:serviceaccount:a:b", Extra: map[string][]string{"authentication.platform.io/node-name": {"n1"}}},
	} {
		z := &rights{allowed: []string{"impersonate-on:associated-node:list pods ns", "impersonate:associated-node nodes.authentication.k8s.io  *"}}
		if _, err := impersonates(t, z.control(true), caller, http.Header{"Impersonate-User": {"system:node:n1"}}); !services.IsReason(err, services.ReasonForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := impersonates(t, (&rights{}).control(true), services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}})
	if want := `pods is forbidden: User "sam" cannot impersonate-on:user-info:list resource "pods" in API group "" in the namespace "ns"`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	z := &rights{allowed: []string{"impersonate users  jane"}, broken: "impersonate-on:user-info:list"}
	if r, err := impersonates(t, z.control(true), services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}}); err != nil || r.Constraint != "" {
		t.Errorf("authz fails for the constrained right: %v", err)
	}
	const g = ".authentication.k8s.io"
	user := []string{"impersonate-on:user-info:list pods ns", "impersonate:user-info users" + g + "  jane"}
	// A refusal of one mode does not hide that authz gives no answer for another one: the client may try again.
	for what, c := range map[string]struct {
		broken string
		header http.Header
		rights []string
	}{
		"the last mode":   {"impersonate", http.Header{"Impersonate-User": {"jane"}}, nil},
		"another mode":    {"impersonate:user-info", http.Header{"Impersonate-User": {"jane"}}, []string{"impersonate-on:user-info:list pods ns"}},
		"any group":       {"impersonate:user-info groups" + g + "  *", http.Header{"Impersonate-User": {"jane"}, "Impersonate-Group": {"a", "b", "c", "d"}}, user},
		"any extra value": {"impersonate:user-info userextras/*" + g + "  *", http.Header{"Impersonate-User": {"jane"}, "Impersonate-Extra-Acme.io/a": {"a", "b", "c", "d"}}, user},
	} {
		z := &rights{allowed: c.rights, broken: c.broken}
		r, err := impersonates(t, z.control(true), services.UserInfo{Name: "sam"}, c.header)
		if services.AsStatus(err).Code != http.StatusServiceUnavailable || r.User.Name != "sam" || len(r.Audit.Annotations()) > 0 {
			t.Errorf("%s: authz fails: %v, %v", what, err, r.Audit.Annotations())
		}
	}
	z.broken = "impersonate"
	if _, err := impersonates(t, z.control(false), services.UserInfo{Name: "sam"}, http.Header{"Impersonate-User": {"jane"}}); services.AsStatus(err).Code != http.StatusServiceUnavailable {
		t.Errorf("authz fails: %v", err)
	}
}

// constrainedOnly allows every constrained right.
type constrainedOnly struct{ *rights }

func (constrainedOnly) Authorize(_ context.Context, a services.Attributes) (services.Decision, error) {
	return services.Decision{Allowed: a.Verb != "impersonate"}, nil
}
