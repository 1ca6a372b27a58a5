package cel

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// maxChecks bounds the decisions that a request remembers. The cost of a check bounds how
// many one expression makes.
const maxChecks = 256

// checks are the decisions of authorization that the expressions of a request have asked
// for. Each is made once.
type checks struct {
	authz services.Authz
	own   user.Info // the user of the request

	mu    sync.Mutex
	known map[check]services.Decision
}

// check identifies a decision. The user of the request and a service account of the same
// name may differ in their groups.
type check struct {
	own                                                                        bool
	user, verb, path, group, version, resource, subresource, namespace, object string
	fields, labels                                                             string
}

func newChecks(authz services.Authz, own user.Info) *checks {
	return &checks{authz: authz, own: own, known: map[check]services.Decision{}}
}

// checker is the authorizer of one evaluation. It is not safe for concurrent use.
type checker struct {
	ctx    context.Context
	checks *checks
	failed error // of a check that was not decided
}

// Authorize implements authorizer.UnconditionalAuthorizer. The library does not pass on the
// context of the evaluation.
func (c *checker) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	d, err := c.checks.decide(c.ctx, a)
	if err != nil {
		c.failed = err
		return authorizer.DecisionNoOpinion, "", err
	}
	if d.EvaluationError != "" {
		err = errors.New(d.EvaluationError)
	}
	switch {
	case d.Allowed:
		return authorizer.DecisionAllow, d.Reason, err
	case d.Denied:
		return authorizer.DecisionDeny, d.Reason, err
	}
	return authorizer.DecisionNoOpinion, d.Reason, err
}

// decide makes a decision, or returns that of an equal check.
func (c *checks) decide(ctx context.Context, a authorizer.Attributes) (services.Decision, error) {
	key := check{
		own: a.GetUser() == c.own, user: a.GetUser().GetName(), verb: a.GetVerb(), path: a.GetPath(), group: a.GetAPIGroup(), version: a.GetAPIVersion(),
		resource: a.GetResource(), subresource: a.GetSubresource(), namespace: a.GetNamespace(), object: a.GetName(),
	}
	if required, _ := a.GetFieldSelector(); len(required) > 0 { // what cannot be parsed is ignored
		key.fields = resource.FieldSelectorOf(required)
	}
	if required, _ := a.GetLabelSelector(); len(required) > 0 {
		key.labels = resource.LabelSelectorOf(required)
	}
	c.mu.Lock()
	known, ok := c.known[key]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	if c.authz == nil {
		return services.Decision{}, errors.New("there is no authorizer")
	}
	d, err := c.authz.Authorize(ctx, services.Attributes{
		User: services.UserInfo{Name: key.user, UID: a.GetUser().GetUID(), Groups: a.GetUser().GetGroups(), Extra: a.GetUser().GetExtra()},
		Verb: key.verb, Path: key.path, Group: key.group, Version: key.version, Resource: key.resource, Subresource: key.subresource,
		Namespace: key.namespace, Name: key.object, FieldSelector: key.fields, LabelSelector: key.labels,
	})
	if err != nil {
		return d, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) < maxChecks {
		c.known[key] = d
	}
	return d, nil
}
