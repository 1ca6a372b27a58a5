package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/portico-platform/portico/services"
)

// admission implements services.Admission with the handlers of a service.
type admission struct {
	service Service
	timeout time.Duration
	slots   chan struct{} // one per review in progress
	metrics *metrics
	log     *slog.Logger
}

// phase is what a review may do.
type phase string

const (
	mutating   phase = "mutate"
	validating phase = "validate"
)

// Admission returns the service as an implementation of the contract, to be called in this
// process: in tests, or in a server of the author's own. It does not call Start.
func Admission(s Service, o Options) services.Admission { return newAdmission(s, o) }

func newAdmission(s Service, o Options) *admission {
	return &admission{service: s, timeout: o.Timeout, slots: make(chan struct{}, max(1, o.MaxInFlight)), metrics: newMetrics(), log: o.logger(s.Name)}
}

// Mutate implements services.Admission.
func (a *admission) Mutate(ctx context.Context, request services.AdmissionRequest) (services.AdmissionResponse, error) {
	r, err := a.review(ctx, mutating, request)
	if err != nil {
		return r.notes(), err
	}
	return r.response()
}

// Validate implements services.Admission.
func (a *admission) Validate(ctx context.Context, request services.AdmissionRequest) (services.AdmissionResponse, error) {
	r, err := a.review(ctx, validating, request)
	return r.notes(), err
}

// notes returns the response without an object.
func (r *Review) notes() services.AdmissionResponse {
	return services.AdmissionResponse{Warnings: r.warnings, AuditAnnotations: r.audit}
}

// review calls the handler of a phase. The error is a Status: one with a code below 500 is a
// refusal, any other a failure.
func (a *admission) review(ctx context.Context, p phase, request services.AdmissionRequest) (*Review, error) {
	r := &Review{AdmissionRequest: request, readOnly: p == validating}
	handler := a.service.Mutate
	if p == validating {
		handler = a.service.Validate
	}
	if handler == nil {
		return r, nil
	}
	start := time.Now()
	err := a.decide(ctx, handler, r)
	a.metrics.observe(p, err, time.Since(start))
	if err == nil {
		return r, nil
	}
	status := services.AsStatus(err)
	if refusal(err) == nil {
		a.log.ErrorContext(ctx, "a review failed", "phase", string(p), "uid", r.UID, "resource", r.Resource, "namespace", r.Namespace, "name", r.Name, "error", err)
	}
	return r, status
}

// decide calls the handler unless the service is not ready or busy.
func (a *admission) decide(ctx context.Context, handler Handler, r *Review) error {
	if a.service.Ready != nil {
		if err := a.service.Ready(); err != nil {
			return services.Unavailable("%s is not ready: %v", a.service.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		return services.Unavailable("%s is reviewing %d requests, which is its limit", a.service.Name, cap(a.slots))
	}
	err := a.call(ctx, handler, r)
	if ended := ctx.Err(); ended != nil && refusal(err) == nil {
		// A late decision is no decision: the caller has applied the failure policy.
		if errors.Is(ended, context.Canceled) {
			return services.Unavailable("the caller has canceled the review")
		}
		return services.Timeout("%s has not decided in time", a.service.Name)
	}
	return err
}

// call calls the handler; a panic becomes an error.
func (a *admission) call(ctx context.Context, handler Handler, r *Review) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			a.log.ErrorContext(ctx, "a handler panicked", "uid", r.UID, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return handler(ctx, r)
}

// errPanic does not contain the panic's value, because the client sees the error.
var errPanic = errors.New("the admission service panicked")

var _ services.Admission = (*admission)(nil)
