package authfilters

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/limit"
)

// impersonation holds the parsed Impersonate- headers of a request.
type impersonation struct {
	user   string
	uid    string
	groups []string
	extra  map[string][]string

	// What the name says: that of a node, or the namespace and name of a service account. All are
	// empty for another user.
	node, namespace, account string
	// eachGroup and eachExtra are groups and extra without repetitions, for the calls of authz.
	eachGroup []string
	eachExtra map[string][]string
}

// maxEach is the maximum number of different groups of a request, and of different extra values. Each
// of them is a call of authz, before the request has a seat. Users of large directories have about a
// thousand groups.
const maxEach = 1024

// readImpersonation parses the headers (section "Impersonation"). It returns nil if
// there are none.
func readImpersonation(h http.Header) (*impersonation, error) {
	im := &impersonation{user: h.Get("Impersonate-User"), uid: h.Get("Impersonate-Uid"), groups: h.Values("Impersonate-Group")}
	// Keys that differ only in spelling are merged, in a fixed order.
	for _, name := range slices.Sorted(maps.Keys(h)) {
		key, ok := strings.CutPrefix(name, "Impersonate-Extra-")
		if !ok {
			continue
		}
		key, err := url.PathUnescape(strings.ToLower(key))
		if err != nil {
			return nil, services.BadRequest("header %s: the name of the extra field is not percent-encoded UTF-8", name)
		}
		if im.extra == nil {
			im.extra = map[string][]string{}
		}
		im.extra[key] = append(im.extra[key], h[name]...)
	}
	switch {
	case im.user != "":
		im.namespace, im.account = serviceAccount(im.user)
		im.node = nodeAgent(im.user)
		return im, im.findEach()
	case im.uid != "" || len(im.groups) > 0 || len(im.extra) > 0:
		return nil, services.BadRequest("Impersonate-Uid, Impersonate-Group and Impersonate-Extra headers require Impersonate-User")
	}
	return nil, nil
}

// findEach sets eachGroup and eachExtra. It returns BadRequest (400) if there are too many.
func (im *impersonation) findEach() error {
	im.eachGroup, im.eachExtra = distinct(im.groups), make(map[string][]string, len(im.extra))
	if len(im.eachGroup) > maxEach {
		return tooMany("Impersonate-Group")
	}
	all := 0
	for key, values := range im.extra {
		im.eachExtra[key] = distinct(values)
		if all += len(im.eachExtra[key]); all > maxEach {
			return tooMany("Impersonate-Extra")
		}
	}
	return nil
}

func tooMany(headers string) error {
	return limit.Exceeded(limit.Impersonated, services.BadRequest("The %s headers of a request may have at most %d different values", headers, maxEach))
}

// distinct returns the values of a list without repetitions, in their order.
func distinct(values []string) []string {
	seen := make(map[string]bool, len(values))
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool {
		again := seen[value]
		seen[value] = true
		return again
	})
}

// identity returns the impersonated user, who is in the default groups if the request names no groups.
func (im *impersonation) identity(defaults []string) services.UserInfo {
	u := services.UserInfo{Name: im.user, UID: im.uid, Groups: append([]string(nil), im.groups...), Extra: im.extra}
	if len(im.groups) == 0 {
		u.Groups = append(u.Groups, defaults...)
	}
	given := func(group string) bool { return slices.Contains(im.groups, group) }
	switch {
	case im.user == services.UserAnonymous:
		if !given(services.GroupUnauthenticated) {
			u.Groups = append(u.Groups, services.GroupUnauthenticated)
		}
	// Impersonating the anonymous user must not add the group of authenticated users.
	case !given(services.GroupAuthenticated) && !given(services.GroupUnauthenticated):
		u.Groups = append(u.Groups, services.GroupAuthenticated)
	}
	return u
}

// onlyUser reports whether the headers give nothing but the name of a user.
func (im *impersonation) onlyUser() bool {
	return im.uid == "" && len(im.groups) == 0 && len(im.extra) == 0
}

// serviceAccount returns the namespace and name of the username of a service account, empty for any
// other username.
func serviceAccount(user string) (namespace, name string) {
	rest, ok := strings.CutPrefix(user, services.UserServiceAccountStart)
	if !ok {
		return "", ""
	}
	namespace, name, ok = strings.Cut(rest, ":")
	if !ok || len(validation.ValidateNamespaceName(namespace, false)) > 0 || len(validation.ValidateServiceAccountName(name, false)) > 0 {
		return "", ""
	}
	return namespace, name
}

// Impersonated replaces the user by the impersonated one, if the caller is authorized to
// impersonate it (section "Impersonation").
func (c *Control) Impersonated(next request.Handler) request.Handler {
	return func(w http.ResponseWriter, r *request.Request) error {
		im, err := readImpersonation(r.Header)
		if err != nil {
			return err
		}
		if im == nil {
			return next(w, r)
		}
		made, err := c.impersonate(r, im)
		if err != nil {
			return err
		}
		r.User, r.Impersonated, r.Constraint = made.identity, true, made.mode.verb()
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				r.Header.Del(name)
			}
		}
		return next(w, r)
	}
}

// impersonate returns the first attempt that succeeds. Otherwise the error is that of the first one,
// or the first error that is no refusal: a client must not give up because one mode is refused, if authz
// has not decided about another one.
func (c *Control) impersonate(r *request.Request, im *impersonation) (*attempt, error) {
	var first *attempt
	var refused error
	for _, m := range c.Constrained.modes(r.Caller.Name) {
		if !m.applies(c.Vocabulary, im, r.Caller) {
			continue
		}
		t := &attempt{c: c, r: r, im: im, mode: m, caller: m.caller(c.Vocabulary, r.Caller)}
		err := t.authorize()
		if err == nil {
			t.accept()
			c.Constrained.note(r.Caller.Name, m, true)
			return t, nil
		}
		if first == nil {
			first = t
		}
		if refused == nil || isForbidden(refused) && !isForbidden(err) {
			refused = err
		}
	}
	if isForbidden(refused) {
		c.decided(r, first.refusal)
	}
	c.Constrained.note(r.Caller.Name, plain, false)
	return nil, refused
}

// attempt is an impersonation in one mode. What it needs is noted once all of it is allowed.
type attempt struct {
	c    *Control
	r    *request.Request
	im   *impersonation
	mode mode
	// caller is the caller as the questions to authz name it.
	caller   services.UserInfo
	identity services.UserInfo

	allowed []allowed
	refusal services.Decision
}

// allowed is a question that authz has answered with yes.
type allowed struct {
	services.Attributes
	services.Decision
}

// authorize asks authz everything that the mode needs, and sets the identity. It returns
// Forbidden (403) with the first refusal.
func (t *attempt) authorize() error {
	if t.mode != plain {
		a := t.r.Attributes()
		a.Verb = t.mode.on(a.Verb)
		if err := t.ask(a); err != nil {
			return err
		}
	}
	var groups []string
	user := services.Attributes{Resource: "users", Name: t.im.user}
	if t.im.account != "" {
		user.Resource, user.Namespace, user.Name = "serviceaccounts", t.im.namespace, t.im.account
		groups = []string{services.GroupServiceAccounts, services.GroupServiceAccounts + ":" + t.im.namespace}
	} else if t.im.node != "" && t.mode != plain {
		user.Resource, user.Name, groups = "nodes", t.im.node, []string{services.GroupNodes}
		if t.mode == associatedNode {
			user.Name = "*" // the right is that to impersonate the node one is on, whichever it is
		}
	}
	if err := t.ask(t.of(user, t.mode != plain)); err != nil {
		return err
	}
	if t.im.uid != "" {
		if err := t.ask(t.of(services.Attributes{Resource: "uids", Name: t.im.uid}, true)); err != nil {
			return err
		}
	}
	if err := t.authorizeGroups(); err != nil {
		return err
	}
	if err := t.authorizeExtra(); err != nil {
		return err
	}
	t.identity = t.im.identity(groups)
	return nil
}

// of completes a question about a part of the identity. Plain impersonation has users, service
// accounts and groups in the core group.
func (t *attempt) of(a services.Attributes, authentication bool) services.Attributes {
	a.Verb, a.Version = "impersonate", "v1"
	if t.mode != plain {
		a.Verb = t.mode.verb()
	}
	if authentication {
		a.Group = t.c.Vocabulary.Group("authentication.")
	}
	return a
}

// many is from how many groups or extra values on the right to impersonate any is checked first, in
// constrained modes.
const many = 4

func (t *attempt) authorizeGroups() error {
	group := func(name string) services.Attributes {
		return t.of(services.Attributes{Resource: "groups", Name: name}, t.mode != plain)
	}
	if t.mode != plain {
		switch {
		case slices.Contains(t.im.groups, ""):
			return t.refuse(group(""), "impersonating the empty string group is not allowed")
		case slices.Contains(t.im.groups, services.GroupMasters):
			return t.refuse(group(services.GroupMasters), "impersonating the system:masters group is not allowed")
		case len(t.im.groups) >= many:
			if err := t.ask(group("*")); !isForbidden(err) {
				return err
			}
		}
	}
	for _, name := range t.im.eachGroup {
		if err := t.ask(group(name)); err != nil {
			return err
		}
	}
	return nil
}

func (t *attempt) authorizeExtra() error {
	extra := func(key, value string) services.Attributes {
		return t.of(services.Attributes{Resource: "userextras", Subresource: key, Name: value}, true)
	}
	keys, values := slices.Sorted(maps.Keys(t.im.extra)), 0
	for _, key := range keys {
		if why := unusualExtra(key, t.im.extra[key]); why != "" && t.mode != plain {
			return t.refuse(extra("", ""), why)
		}
		values += len(t.im.extra[key])
	}
	if t.mode != plain && values >= many {
		if err := t.ask(extra("*", "*")); !isForbidden(err) {
			return err
		}
	}
	for _, key := range keys {
		for _, value := range t.im.eachExtra[key] {
			if err := t.ask(extra(key, value)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask returns nil if authz allows what the attributes say.
func (t *attempt) ask(a services.Attributes) error {
	a.User = t.caller
	decision, err := t.c.allow(t.r, a)
	if err != nil {
		t.refusal = decision
		return err
	}
	t.allowed = append(t.allowed, allowed{a, decision})
	return nil
}

func isForbidden(err error) bool { return services.IsReason(err, services.ReasonForbidden) }

// refuse returns the error of what no caller may do in a constrained mode.
func (t *attempt) refuse(a services.Attributes, why string) error {
	a.User = t.caller
	t.refusal = services.Decision{Reason: why}
	return Forbidden(a, t.refusal)
}

// accept notes what has been allowed: for the audit log, and for as long as the request runs.
func (t *attempt) accept() {
	for _, one := range t.allowed {
		t.c.note(t.r, one.Attributes, one.Decision, t.mode != associatedNode)
	}
}
