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
	"sync/atomic"
	"time"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/replicas"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/admissionservice"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/kit/tracing"
)

// Plugin asks the services.
type Plugin struct {
	Registry *Registry
	Matcher  match.Matcher
	Authz    services.Authz
	Log      *slog.Logger

	spared atomic.Int64 // bytes of objects that calls hold whose answers do not count
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
	cut     error // the Timeout of a call that the request has cut, whatever the failure policy is
	took    time.Duration
	changed bool
	done    chan struct{} // closed at the end of a call whose answer does not count
}

// Mutate asks the services that mutate, one after the other. Those whose answers do not
// count are called meanwhile.
func (p *Plugin) Mutate(ctx context.Context, r *review.Review) error {
	var unenforced []*asked
	err := p.each(ctx, r, replicas.Mutate, func(a *asked) error {
		seen, before := r.Seen[a.key()]
		if r.Round > 0 && (!before || review.Same(seen, a.request.Object)) {
			return nil
		}
		r.Seen[a.key()] = a.request.Object
		if !a.enforced {
			unenforced = append(unenforced, a)
			p.start(ctx, a)
			return nil
		}
		p.ask(ctx, a)
		return p.change(ctx, r, a)
	})
	p.collect(ctx, r, unenforced)
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
	var enforced, unenforced []*asked
	var running sync.WaitGroup
	err := p.each(ctx, r, replicas.Validate, func(a *asked) error {
		if !a.enforced {
			unenforced = append(unenforced, a)
			p.start(ctx, a)
			return nil
		}
		enforced = append(enforced, a)
		running.Go(func() { p.ask(ctx, a) })
		return nil
	})
	running.Wait()
	for _, a := range enforced {
		p.record(r, a)
	}
	for _, a := range enforced {
		if err == nil {
			err = p.verdict(ctx, a)
		}
	}
	p.collect(ctx, r, unenforced)
	return err
}

// each calls ask for every service of a phase that is concerned, until one returns an error. What keeps a service
// from being asked whose answer does not count is recorded, and is no error.
func (p *Plugin) each(ctx context.Context, r *review.Review, phase replicas.Phase, ask func(*asked) error) error {
	for _, s := range p.Registry.Services() {
		if !s.takesPart(phase) {
			continue
		}
		a := &asked{Service: s, phase: phase, enforced: s.enforces(r), round: r.Round}
		concerned, err := p.prepare(ctx, r, a)
		switch {
		case err != nil && !a.enforced && !errors.Is(err, services.ErrNoConverter):
			p.unasked(r, a, err)
			continue
		case err == nil && concerned:
			err = ask(a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// prepare reports whether a service is asked about a request, and sets what it is asked.
func (p *Plugin) prepare(ctx context.Context, r *review.Review, a *asked) (concerned bool, err error) {
	if !a.enforced {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, grace)
		defer cancel()
	}
	if a.as, concerned, err = p.Matcher.Matches(ctx, &a.rules, r); err != nil || !concerned {
		return false, err
	}
	if skip, err := p.skips(ctx, a.Service, r); err != nil || skip {
		return false, err
	}
	if r.DryRun && a.Spec.SideEffects == admissionservice.Some {
		if !a.enforced {
			return false, nil
		}
		return false, services.BadRequest("admission service %q does not support dry run", a.Name)
	}
	if a.request, err = requestAs(ctx, r, a.as); err != nil {
		return false, match.NotConverted(ctx, a.rules.Who, err)
	}
	return true, nil
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
	ctx, cancel := deadline.Within(ctx, time.Duration(a.Spec.TimeoutSeconds)*time.Second, a.share(ctx))
	defer cancel()
	ctx, span := tracing.StartCall(ctx, "admission-service", string(a.phase))
	span.Set("portico.admission.service", a.Name)
	began := time.Now()
	a.answer, a.err = a.pool.Ask(ctx, a.phase, a.request)
	a.took, a.cut = time.Since(began), deadline.Cut(ctx, a.err)
	span.Set("portico.admission.verdict", a.result())
	span.End(a.err)
	a.tally.count(a)
	p.Registry.metrics.observe(a)
}

// share returns the share of the remaining time that a call may take; 0 is no bound. A call whose failure is
// ignored has its whole timeout if the request has as much: its share must neither skip the check nor refuse the
// request.
func (a *asked) share(ctx context.Context) time.Duration {
	until, bounded := ctx.Deadline()
	if !bounded {
		return 0
	}
	left := time.Until(until)
	if a.Spec.FailurePolicy == admissionservice.Ignore && left >= time.Duration(a.Spec.TimeoutSeconds)*time.Second {
		return 0
	}
	return max(1, left*time.Duration(a.Spec.BudgetPercent)/100)
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
	case a.cut != nil:
		return a.cut
	case deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	case errors.Is(a.err, replicas.ErrBusy): // which clients can cause
		return services.TooManyRequests("admission service %q: %v", a.Name, a.err)
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
