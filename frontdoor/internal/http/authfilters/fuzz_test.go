package authfilters

import (
	"bufio"
	"cmp"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzBearerToken reads tokens from headers of requests and WebSockets.
func FuzzBearerToken(f *testing.F) {
	c := &Control{Vocabulary: vocabulary.Platform()}
	f.Fuzz(func(t *testing.T, authorization, upgrade, protocol string) {
		h := http.Header{}
		h.Set("Authorization", authorization)
		h.Set("Upgrade", upgrade)
		h.Set("Sec-WebSocket-Protocol", protocol)
		token := c.bearerToken(h)
		if len(token) > len(authorization)+len(protocol) {
			t.Errorf("a token of %d bytes from %d", len(token), len(authorization)+len(protocol))
		}
		scheme, _, _ := strings.Cut(authorization, " ")
		if token != "" && !strings.EqualFold(scheme, "Bearer") && !strings.EqualFold(upgrade, "websocket") {
			t.Errorf("%q, %q, %q: the token %q is no bearer's", authorization, upgrade, protocol, token)
		}
	})
}

// FuzzImpersonation parses headers line by line: every group and value that the request
// would act with is authorized.
func FuzzImpersonation(f *testing.F) {
	f.Fuzz(func(t *testing.T, lines string) {
		header, err := textproto.NewReader(bufio.NewReader(strings.NewReader(lines + "\r\n\r\n"))).ReadMIMEHeader()
		if err != nil {
			return
		}
		im, err := readImpersonation(http.Header(header))
		if im == nil || err != nil {
			return
		}
		if im.user == "" {
			t.Errorf("%q impersonates no user", lines)
		}
		z := &rights{allowed: []string{"*"}}
		r, err := impersonates(t, z.control(false), services.UserInfo{Name: "sam"}, http.Header(header))
		if err != nil {
			t.Fatal(err)
		}
		z.covers(t, r, false)
		for _, wildcard := range []bool{false, true} { // whether the right to impersonate any group or value is granted
			z := &rights{allowed: []string{"*"}, denied: func(a services.Attributes) bool {
				return a.Verb == "impersonate" || a.Name == "*" && !wildcard && a.Resource != "nodes"
			}}
			on := services.UserInfo{Name: "system:serviceaccount:a:agent", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}
			r, err := impersonates(t, z.control(true), on, http.Header(header))
			switch {
			case err == nil:
				z.covers(t, r, true)
				checkConstrained(t, im, r)
			case !services.IsReason(err, services.ReasonForbidden):
				t.Errorf("%q: %v", lines, err)
			}
		}
	})
}

// covers checks that authz has allowed each part of the identity with which a request acts, singly or,
// with constrained impersonation, by the right to any group or any extra value.
func (g *rights) covers(t *testing.T, r *request.Request, constrained bool) {
	t.Helper()
	verb, allowed := cmp.Or(r.Constraint, "impersonate"), map[string]bool{}
	for _, a := range g.of {
		if a.Verb == verb && !g.denies(a) {
			allowed[a.Resource+"/"+a.Subresource+"="+a.Name] = true
		}
	}
	name := r.User.Name
	if _, account := serviceAccount(name); account != "" {
		name = account
	} else if node := nodeAgent(name); node != "" && constrained {
		name = node
	}
	if !allowed["users/="+name] && !allowed["serviceaccounts/="+name] && !allowed["nodes/="+name] && !(r.Constraint == associatedNode.verb() && allowed["nodes/=*"]) {
		t.Errorf("%+v: no authorization of the user: %v", r.User, allowed)
	}
	if r.User.UID != "" && !allowed["uids/="+r.User.UID] {
		t.Errorf("%+v: no authorization of the UID: %v", r.User, allowed)
	}
	for _, group := range r.User.Groups {
		if !allowed["groups/="+group] && !(constrained && allowed["groups/=*"]) && !slices.Contains(given(r.User.Name, constrained), group) {
			t.Errorf("%+v: no authorization of the group %q: %v", r.User, group, allowed)
		}
	}
	for key, values := range r.User.Extra {
		for _, value := range values {
			if !allowed["userextras/"+key+"="+value] && !(constrained && allowed["userextras/*=*"]) {
				t.Errorf("%+v: no authorization of %q=%q: %v", r.User, key, value, allowed)
			}
		}
	}
}

// given returns the groups that a user may have without a right to them.
func given(user string, constrained bool) []string {
	groups := []string{services.GroupAuthenticated}
	if namespace, account := serviceAccount(user); account != "" {
		groups = []string{services.GroupServiceAccounts, services.GroupServiceAccounts + ":" + namespace, services.GroupAuthenticated}
	} else if nodeAgent(user) != "" && constrained {
		groups = []string{services.GroupNodes, services.GroupAuthenticated}
	} else if user == services.UserAnonymous {
		groups = []string{services.GroupUnauthenticated}
	}
	return groups
}

// checkConstrained checks what no right to constrained impersonation may give.
func checkConstrained(t *testing.T, im *impersonation, r *request.Request) {
	t.Helper()
	if r.Constraint == "" || slices.Contains(r.User.Groups, services.GroupMasters) {
		t.Errorf("%+v: constrained by %q", r.User, r.Constraint)
	}
	if im.node == "" && im.account == "" {
		return
	}
	if u := r.User; !slices.Equal(u.Groups, given(im.user, true)) || u.UID != "" || len(u.Extra) > 0 || u.Name != im.user {
		t.Errorf("%+v: more than the fixed groups", u)
	}
}

// TestBearerToken: the token ends at a space, and a second space before it means that there is none.
func TestBearerToken(t *testing.T) {
	c := &Control{Vocabulary: vocabulary.K8s()}
	for header, want := range map[string]string{"Bearer abc": "abc", "bearer abc": "abc", " Bearer abc ": "abc", "Bearer  abc": "", "Bearer": "", "Bearer abc def": "abc", "Basic abc": ""} {
		if got := c.bearerToken(http.Header{"Authorization": {header}}); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}
