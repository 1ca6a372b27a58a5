package services

import (
	"context"
	"time"
)

// Authz decides what a user may do (sections "Impersonation" and "Authorization
// notes"). It is modeled on SubjectAccessReview. The front door and admission may call
// it.
type Authz interface {
	// Authorize decides one request. An error means that no decision was made
	// (unreachable, not ready); a denial is a Decision.
	Authorize(ctx context.Context, a Attributes) (Decision, error)

	// Rules returns what a user may do in a namespace, as far as it can be determined
	// (SelfSubjectRulesReview).
	Rules(ctx context.Context, r RulesRequest) (Rules, error)
}

// Attributes describes a request to authorize.
type Attributes struct {
	User UserInfo
	Verb string
	// Path is set for non-resource requests; the other fields are then empty.
	Path        string
	Group       string
	Version     string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	// FieldSelector and LabelSelector are those of a list, watch or deletecollection, as
	// the client sent them. They only narrow the request: an authorizer that cannot parse
	// one decides as if it were empty.
	FieldSelector, LabelSelector string
	// NotBefore is the revision that a permission must include if it depends on stored roles and bindings; 0 for
	// any. An authorizer waits until it knows them, at most for MaxAuthzWait; then it decides by those that it knows,
	// and the Decision has an older Revision. One that does not know the field decides at once.
	NotBefore int64
}

// MaxAuthzWait bounds how long an authorizer waits for the revision NotBefore.
const MaxAuthzWait = 250 * time.Millisecond

// Decision is the result. Neither Allowed nor Denied means no opinion, which the front
// door treats as a denial.
type Decision struct {
	Allowed bool
	Denied  bool
	Reason  string
	// EvaluationError names what could not be evaluated, such as a missing role of a
	// binding.
	EvaluationError string
	// Revision is set if the decision depends only on the request and stored roles and bindings: it is valid
	// until one of them changes after this revision. 0 means that the decision must not be cached.
	Revision int64
	// AnyName means that the decision is the same for every Name.
	AnyName bool
	// Rule is the rule that allowed the request. If none did, Miss is the closest rule, with what it does not
	// cover. Both are for administrators: the user must not see them.
	Rule, Miss string
}

// RulesRequest requests the rules of a user in a namespace.
type RulesRequest struct {
	User      UserInfo
	Namespace string
}

// Rules is what a user may do.
type Rules struct {
	Resource    []ResourceRule
	NonResource []NonResourceRule
	// Incomplete is true when some rules could not be read; EvaluationError has the
	// reason.
	Incomplete      bool
	EvaluationError string
}

// ResourceRule allows verbs on resources; "*" is any, and empty ResourceNames is any.
type ResourceRule struct {
	Verbs, APIGroups, Resources, ResourceNames []string
}

// NonResourceRule allows verbs on paths; a path may end in "*".
type NonResourceRule struct {
	Verbs, Paths []string
}
