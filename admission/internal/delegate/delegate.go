// Package delegate asks admission services about requests, as AdmissionServices and the
// file say: whom, in which order, for which objects an answer is enforced, and what the
// lack of one means. Everything is recorded in metrics, in the trace, in audit annotations
// and in the timings of the response. It serves "Admission plugins" and "Dry-run" of the
// specification.
package delegate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/replicas"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Plugin asks the services.
type Plugin struct {
	Registry *Registry
	Matcher  match.Matcher
	Authz    services.Authz
	Log      *slog.Logger
}

// asked is a service that is called for a request, and the outcome.
type asked struct {
	*Service
	phase    replicas.Phase
	enforced bool
	round    int
	as       services.ServedType       // as which the service knows the objects
	request  services.AdmissionRequest // in the version that the service knows

	answer  replicas.Answer
	err     error
	took    time.Duration
	changed bool
}

// Mutate asks the services that mutate, one after the other. Those whose answers do not
// count are called meanwhile.
func (p *Plugin) Mutate(ctx context.Context, r *review.Review) error {
	var shadows []*asked
	var running sync.WaitGroup
	err := p.each(ctx, r, replicas.Mutate, func(a *asked) error {
		seen, before := r.Seen[a.key()]
		if r.Round > 0 && (!before || review.Same(seen, a.request.Object)) {
			return nil
		}
		r.Seen[a.key()] = a.request.Object
		if !a.enforced {
			shadows = append(shadows, a)
			running.Go(func() { p.ask(ctx, a) })
			return nil
		}
		p.ask(ctx, a)
		return p.change(ctx, r, a)
	})
	running.Wait()
	for _, a := range shadows {
		p.record(r, a)
	}
	return err
}

// change applies the answer of a service that mutates.
func (p *Plugin) change(ctx context.Context, r *review.Review, a *asked) error {
	if a.err == nil && a.answer.Object != nil && !review.Same(a.request.Object, a.answer.Object) {
		if a.err = r.ReplaceAs(ctx, a.as, a.answer.Object); a.err == nil {
			a.changed = true
			r.Seen[a.key()] = a.answer.Object
			r.Again()
		}
	}
	p.record(r, a)
	return p.verdict(ctx, a)
}

// Validate asks the services that validate, concurrently. If several refuse the request,
// the answer of the first in their order counts.
func (p *Plugin) Validate(ctx context.Context, r *review.Review) error {
	var all []*asked
	var running sync.WaitGroup
	err := p.each(ctx, r, replicas.Validate, func(a *asked) error {
		all = append(all, a)
		running.Go(func() { p.ask(ctx, a) })
		return nil
	})
	running.Wait()
	for _, a := range all {
		p.record(r, a)
	}
	for _, a := range all {
		if err == nil && a.enforced {
			err = p.verdict(ctx, a)
		}
	}
	return err
}

// each calls ask for every service of a phase, until one returns an
// error.
func (p *Plugin) each(ctx context.Context, r *review.Review, phase replicas.Phase, ask func(*asked) error) error {
	for _, s := range p.Registry.Services() {
		if !s.takesPart(phase) {
			continue
		}
		enforced := s.enforces(r)
		as, matches, err := p.Matcher.Matches(ctx, &s.rules, r)
		if err != nil && !enforced {
			continue
		}
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		skip, err := p.skips(ctx, s, r)
		switch {
		case err != nil:
			return err
		case skip:
			continue
		case r.DryRun && s.Spec.SideEffects == admissionservice.Some && !enforced:
			continue
		case r.DryRun && s.Spec.SideEffects == admissionservice.Some:
			return services.BadRequest("admission service %q does not support dry run", s.Name)
		}
		a := &asked{Service: s, phase: phase, enforced: enforced, round: r.Round, as: as}
		if a.request, err = requestAs(ctx, r, as); err != nil {
			return match.NotConverted(ctx, s.rules.Who, err)
		}
		if err := ask(a); err != nil {
			return err
		}
	}
	return nil
}

// Concerns reports whether a service may be called for requests like that of a review. The
// file may name another service at any time, which no revision tells of.
func (p *Plugin) Concerns(r *review.Review) bool {
	return p.Registry.hasFile() || slices.ContainsFunc(p.Registry.known(), func(d *Declared) bool {
		rules := rulesOf(d)
		return d.Problem == "" && p.Matcher.Covers(&rules, r)
	})
}

// NeedsConverter reports whether the request lacks the converter that the services of a
// phase may need.
func (p *Plugin) NeedsConverter(phase replicas.Phase, r *review.Review) bool {
	return r.Converter == nil && slices.ContainsFunc(p.Registry.Services(), func(s *Service) bool {
		return s.takesPart(phase) && p.Matcher.Converts(&s.rules, r)
	})
}

// takesPart reports whether the service is called in a phase.
func (s *Service) takesPart(phase replicas.Phase) bool {
	if phase == replicas.Mutate {
		return s.Spec.Mutates()
	}
	return s.Spec.Validates()
}

// requestAs returns the request in the version of a type that serves its objects.
func requestAs(ctx context.Context, r *review.Review, as services.ServedType) (services.AdmissionRequest, error) {
	object, old, err := r.As(ctx, as)
	request := r.AdmissionRequest
	request.Group, request.Version, request.Resource = as.Group, as.Version, as.Resource
	request.KindGroup, request.KindVersion, request.Kind = as.KindGroup, as.KindVersion, as.Kind
	request.Object, request.OldObject = object, old
	// What admission needs is not for services.
	request.Bypass, request.Served, request.Converter, request.AndValidate, request.ValidateEarly = nil, nil, nil, false, false
	return request, err
}

// ask asks a service within its timeout and its share of the remaining time.
func (p *Plugin) ask(ctx context.Context, a *asked) {
	full := time.Duration(a.Spec.TimeoutSeconds) * time.Second
	within := full
	if deadline, bounded := ctx.Deadline(); bounded {
		within = min(full, time.Until(deadline)*time.Duration(a.Spec.BudgetPercent)/100)
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if within == full {
		ctx = replicas.WithFullTime(ctx)
	}
	ctx, span := tracing.StartCall(ctx, "admission-service", string(a.phase))
	span.Set("portico.admission.service", a.Name)
	began := time.Now()
	a.answer, a.err = a.pool.Ask(ctx, a.phase, a.request)
	a.took = time.Since(began)
	span.Set("portico.admission.verdict", a.result())
	span.End(a.err)
	a.tally.count(a)
	p.Registry.metrics.observe(a)
}

// result is the outcome in one word.
func (a *asked) result() string {
	switch {
	case a.err != nil:
		return "failed"
	case a.answer.Refusal != nil:
		return "denied"
	}
	return "allowed"
}

// verdict returns the error of an enforced answer, nil if the request is admitted.
func (p *Plugin) verdict(ctx context.Context, a *asked) error {
	switch {
	case a.err == nil && a.answer.Refusal == nil:
		return nil
	case a.err == nil:
		return a.answer.Refusal
	case ctx.Err() != nil:
		return services.AsStatus(ctx.Err())
	case a.Spec.FailurePolicy == admissionservice.Ignore:
		p.Log.WarnContext(ctx, "a call of an admission service failed and is ignored", "service", a.Name, "error", a.err)
		return nil
	}
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError,
		Message: fmt.Sprintf("Internal error occurred: failed calling admission service %q: %v", a.Name, plain(a.err))}
}

// plain returns an error without what AsStatus adds to its text.
func plain(err error) error {
	var s *services.Status
	if errors.As(err, &s) {
		return errors.New(s.Message)
	}
	return err
}
