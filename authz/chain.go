package authz

import (
	"context"
	"errors"
	"fmt"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// mode is one of the chosen modes.
type mode struct {
	name string
	services.Authz
}

// chain asks its modes in order, until one allows or denies. Members of system:masters may
// do everything in any mode, so that no configuration locks everyone out.
type chain []mode

// verdict is the result of the modes that have been called for a request.
type verdict struct {
	services.Decision // no opinion, until one decides
	failures          []error
}

func noVerdict() verdict { return verdict{Decision: always(services.Decision{})} }

// cut returns the Timeout of a request that has ended a mode before it could decide: no later mode may allow what
// this one could have denied. A client chooses when its request ends.
func cut(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return deadline.Ended(ctx)
}

// add adds what a mode says. It reports whether that decides.
func (v *verdict) add(m mode, d services.Decision, err error) (decided bool) {
	switch {
	case err != nil:
		v.Revision = 0
		v.failures = append(v.failures, fmt.Errorf("mode %s: %w", m.name, err))
		return false
	case d.Allowed || d.Denied:
		d.Revision, d.AnyName = min(d.Revision, v.Revision), d.AnyName && v.AnyName
		*v = verdict{Decision: d}
		return true
	}
	v.Revision, v.AnyName = min(v.Revision, d.Revision), v.AnyName && d.AnyName
	v.Reason = join(v.Reason, d.Reason)
	v.Miss = join(v.Miss, d.Miss)
	v.EvaluationError = join(v.EvaluationError, d.EvaluationError)
	return false
}

// Authorize implements services.Authz. If a mode cannot decide and no other one does, its
// error is returned.
func (c chain) Authorize(ctx context.Context, a services.Attributes) (services.Decision, error) {
	if unrestricted(a.User) {
		return master(), nil
	}
	v := noVerdict()
	for _, m := range c {
		d, err := m.traced(ctx, a, len(c) > 1)
		if v.add(m, d, err) {
			break
		}
		if err := cut(ctx, err); err != nil {
			return v.Decision, err
		}
	}
	return v.Decision, errors.Join(v.failures...)
}

// AuthorizeBatch implements services.AuthzBatch. Each mode decides the requests that the earlier ones
// have left open.
func (c chain) AuthorizeBatch(ctx context.Context, requests []services.Attributes) ([]services.AuthzResult, error) {
	if len(requests) > services.MaxAuthzBatch {
		return nil, services.BadRequest("the batch has %d requests; at most %d are allowed", len(requests), services.MaxAuthzBatch)
	}
	verdicts := make([]verdict, len(requests))
	var open []int
	for i, a := range requests {
		if verdicts[i] = noVerdict(); unrestricted(a.User) {
			verdicts[i].Decision = master()
			continue
		}
		open = append(open, i)
	}
	for _, m := range c {
		if len(open) == 0 {
			break
		}
		open = m.decide(ctx, requests, verdicts, open)
	}
	results := make([]services.AuthzResult, len(requests))
	for i, v := range verdicts {
		results[i] = services.AuthzResult{Decision: v.Decision, Err: errors.Join(v.failures...)}
	}
	return results, nil
}

// decide asks a mode about the open requests. It returns those that it leaves open.
func (m mode) decide(ctx context.Context, requests []services.Attributes, verdicts []verdict, open []int) (left []int) {
	ctx, span := tracing.Start(ctx, "authorized by "+m.name)
	asked := make([]services.Attributes, len(open))
	for n, i := range open {
		asked[n] = requests[i]
	}
	for n, r := range services.AuthorizeAll(ctx, m.Authz, asked) {
		i := open[n]
		if verdicts[i].add(m, r.Decision, r.Err) {
			continue
		}
		if err := cut(ctx, r.Err); err != nil {
			verdicts[i].failures = append(verdicts[i].failures[:0], err)
			continue // it is not left to the later modes
		}
		left = append(left, i)
	}
	if span.Recording() {
		span.Set("requests", fmt.Sprint(len(open)))
		span.Set("undecided", fmt.Sprint(len(left)))
	}
	span.End(nil)
	return left
}

// traced calls a mode, with a separate span in the trace of the request if it is one of several.
func (m mode) traced(ctx context.Context, a services.Attributes, several bool) (services.Decision, error) {
	if !several {
		return m.Authz.Authorize(ctx, a)
	}
	ctx, span := tracing.Start(ctx, "authorized by "+m.name)
	d, err := m.Authz.Authorize(ctx, a)
	if span.Recording() {
		span.Set("allowed", fmt.Sprint(d.Allowed))
		span.Set("reason", d.Reason)
	}
	span.End(err)
	return d, err
}

// Rules implements services.Authz: the rules of all modes.
func (c chain) Rules(ctx context.Context, r services.RulesRequest) (services.Rules, error) {
	if unrestricted(r.User) {
		return everything(), nil
	}
	var all services.Rules
	for _, m := range c {
		rules, err := m.Rules(ctx, r)
		if err != nil {
			rules = services.Rules{Incomplete: true, EvaluationError: err.Error()}
		}
		all.Resource = append(all.Resource, rules.Resource...)
		all.NonResource = append(all.NonResource, rules.NonResource...)
		all.Incomplete = all.Incomplete || rules.Incomplete
		all.EvaluationError = join(all.EvaluationError, rules.EvaluationError)
	}
	return all, nil
}

// master is the decision about a member of system:masters.
func master() services.Decision {
	return always(services.Decision{Allowed: true}) // without a reason, as in Kubernetes
}

var (
	_ services.Authz      = chain(nil)
	_ services.AuthzBatch = chain(nil)
)
