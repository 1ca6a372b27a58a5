package services

import "context"

// Authz decides what a user may do (sections "Impersonation" and "Authorization
// notes"). It is shaped after SubjectAccessReview. The front door and admission
// may call it.
type Authz interface {
	// Authorize answers one question. The error is about the question itself
	// (unreachable, not ready); "no" is a Decision.
	Authorize(ctx context.Context, a Attributes) (Decision, error)

	// Rules returns what a user may do in a namespace, as far as it can be told
	// (SelfSubjectRulesReview).
	Rules(ctx context.Context, r RulesRequest) (Rules, error)
}

// Attributes is one question: may this user do this?
type Attributes struct {
	User UserInfo
	Verb string
	// Path is set for requests that name no resource; the other fields are then empty.
	Path        string
	Group       string
	Version     string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
}

// Decision is the answer. Neither Allowed nor Denied means no opinion, which the
// front door treats as no.
type Decision struct {
	Allowed bool
	Denied  bool
	Reason  string
	// EvaluationError says what could not be looked at, such as a role that a
	// binding names and that does not exist.
	EvaluationError string
}

// RulesRequest asks what a user may do in a namespace.
type RulesRequest struct {
	User      UserInfo
	Namespace string
}

// Rules is what a user may do.
type Rules struct {
	Resource    []ResourceRule
	NonResource []NonResourceRule
	// Incomplete is true when EvaluationError tells of rules that could not be read.
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
