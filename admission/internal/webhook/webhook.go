// Package webhook calls admission webhooks as MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations say: mutating ones in sequence, validating ones
// concurrently. It applies failure policies. It implements MutatingAdmissionWebhook and
// ValidatingAdmissionWebhook under "Admission plugins", and "Dry-run", of the
// specification.
package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	"github.com/portico-platform/portico/admission/internal/admissionreview"
	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/deadline"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Webhooks calls the configured webhooks.
type Webhooks struct {
	Mutating, Validating review.Collection[Configuration]
	Matcher              match.Matcher
	Vocabulary           vocabulary.Vocabulary
	Log                  *slog.Logger
}

// called is a webhook that is called for a request.
type called struct {
	*hook
	index    int
	question admissionreview.Question
}

// Mutate calls the mutating webhooks. In the second round it calls those with
// reinvocationPolicy IfNeeded if the object has changed since their first call.
func (w *Webhooks) Mutate(ctx context.Context, r *review.Review) error {
	for index, hook := range list(w.Mutating) {
		as, matches, err := w.Matcher.Matches(ctx, &hook.rules, r)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		if err := w.change(ctx, called{hook: hook, index: index, question: admissionreview.Question{Review: r, As: as}}, r); err != nil {
			return err
		}
	}
	return nil
}

// NeedsConverter reports whether the request lacks the converter that the webhooks of some
// configurations may need.
func (w *Webhooks) NeedsConverter(of review.Collection[Configuration], r *review.Review) bool {
	return r.Converter == nil && slices.ContainsFunc(list(of), func(h *hook) bool { return w.Matcher.Converts(&h.rules, r) })
}

// list returns all webhooks in the order in which they are called.
func list(configurations review.Collection[Configuration]) (hooks []*hook) {
	for _, c := range configurations.List("") {
		hooks = append(hooks, c.hooks...)
	}
	return hooks
}

// change calls one webhook and applies its patch to the object.
func (w *Webhooks) change(ctx context.Context, c called, r *review.Review) (err error) {
	q := &c.question
	seen, before := r.Seen[c.key()]
	if r.Round > 0 && (!before || !c.reinvoke) {
		return nil
	}
	if q.Object, q.Old, err = r.As(ctx, q.As); err != nil {
		return match.NotConverted(ctx, c.rules.Who, err)
	}
	if r.Round > 0 && review.Same(seen, q.Object) {
		return nil
	}
	changed := false
	defer func() {
		r.Annotate(map[string]string{
			fmt.Sprintf("%s/round_%d_index_%d", w.Vocabulary.Group("mutation.webhook.admission."), r.Round, c.index): fmt.Sprintf(
				`{"configuration":%q,"webhook":%q,"mutated":%t}`, c.configuration, c.name, changed),
		})
	}()
	answer, err := w.call(ctx, c, r)
	c.addNotes(r, answer)
	after := q.Object
	if err == nil && len(answer.Patch) > 0 {
		after, err = admissionreview.Patched(ctx, q.Object, answer)
		err = w.patchError(ctx, c.hook, err)
	}
	if err != nil {
		return w.applyFailurePolicy(ctx, c.hook, r, outcome{err: err, kind: "mutation", index: c.index})
	}
	if changed = !review.Same(q.Object, after); changed {
		if err := r.ReplaceAs(ctx, q.As, after); err != nil {
			return match.NotConverted(ctx, c.rules.Who, err)
		}
		r.Again()
	}
	r.Seen[c.key()] = after
	return nil
}

// patchError returns the error of a patch that could not be applied; nil without an error. As in
// kube-apiserver, it is a failed call, to which the failure policy applies, only if the patch could not be
// applied to any object.
func (w *Webhooks) patchError(ctx context.Context, hook *hook, err error) error {
	var undecodable admissionreview.UndecodableError
	var unsupported admissionreview.PatchTypeError
	switch {
	case err == nil:
		return nil
	case deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	case errors.As(err, &unsupported):
		return &callFailure{err}
	case errors.As(err, &undecodable) && hook.failsUndecodable:
		return &callFailure{fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	case errors.Is(err, admissionreview.ErrNoObject):
		return internal(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", hook.name))
	}
	why := jsonpatch.Why(err)
	w.Log.WarnContext(ctx, "the patch of a webhook cannot be applied", "webhook", hook.name, "configuration", hook.configuration, "error", why)
	return internal(errors.New(why)) // which does not name the webhook, unlike the log
}

// Validate calls the validating webhooks concurrently. If several reject the request, the
// first in the order of the configurations is returned.
func (w *Webhooks) Validate(ctx context.Context, r *review.Review) error {
	var matching []called
	for _, hook := range list(w.Validating) {
		as, matches, err := w.Matcher.Matches(ctx, &hook.rules, r)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		c := called{hook: hook, question: admissionreview.Question{Review: r, As: as, Validates: true}}
		if c.question.Object, c.question.Old, err = r.As(ctx, as); err != nil {
			return match.NotConverted(ctx, hook.rules.Who, err)
		}
		matching = append(matching, c)
	}
	answers, errs := make([]admissionreview.Answer, len(matching)), make([]error, len(matching))
	var group sync.WaitGroup
	for i, c := range matching {
		group.Go(func() { answers[i], errs[i] = w.call(ctx, c, r) })
	}
	group.Wait()
	for i, c := range matching {
		c.addNotes(r, answers[i])
	}
	for i, c := range matching {
		if errs[i] == nil {
			continue
		}
		if err := w.applyFailurePolicy(ctx, c.hook, r, outcome{err: errs[i], kind: "validating", index: i}); err != nil {
			return err
		}
	}
	return nil
}

// outcome is a call that failed or rejected the request.
type outcome struct {
	err   error
	kind  string // mutation or validating, as in audit annotations
	index int
}

// applyFailurePolicy returns the error of a call, nil if the call failed and the webhook's
// failure policy is Ignore.
func (w *Webhooks) applyFailurePolicy(ctx context.Context, hook *hook, r *review.Review, o outcome) error {
	var failure *callFailure
	switch {
	case !errors.As(o.err, &failure):
		return o.err
	case deadline.Ended(ctx) != nil:
		return deadline.Ended(ctx)
	case errors.As(failure.err, new(*ledger.FullError)):
		return services.AsStatus(failure.err) // nobody may get past a webhook by keeping it busy
	case !hook.failOpen:
		return failed(hook, failure.err)
	}
	w.Log.WarnContext(ctx, "a webhook call failed and is ignored", "webhook", hook.name, "configuration", hook.configuration, "error", failure.err)
	r.Annotate(map[string]string{
		fmt.Sprintf("%s/round_%d_index_%d", w.Vocabulary.Group("failed-open."+o.kind+".webhook.admission."), r.Round, o.index): hook.name})
	return nil
}

// failed returns the error 500 for a webhook whose call failed with failure policy Fail.
func failed(hook *hook, err error) *services.Status {
	return internal(fmt.Errorf("failed calling webhook %q: %w", hook.name, err))
}

// internal returns an error 500, whatever is in the chain of err.
func internal(err error) *services.Status {
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError, Message: "Internal error occurred: " + err.Error()}
}

// addNotes adds the warnings and audit annotations of a webhook to the review.
func (h *hook) addNotes(r *review.Review, a admissionreview.Answer) {
	r.Warn(a.Warnings...)
	r.AnnotateFrom(h.name, a.AuditAnnotations)
}

// callFailure is the error of a call without a valid response. The webhook's failure
// policy applies to it.
type callFailure struct{ err error }

func (f *callFailure) Error() string { return f.err.Error() }

// call calls a webhook. If the webhook rejects the request, or does not support dry run, or the request has cut the
// call, the error is a *services.Status; any other error is a *callFailure. The answer has the
// warnings and audit annotations in either case.
func (w *Webhooks) call(ctx context.Context, h called, r *review.Review) (admissionreview.Answer, error) {
	if r.DryRun && !h.dryRunSafe {
		return admissionreview.Answer{}, services.BadRequest("admission webhook %q does not support dry run", h.name)
	}
	call, cancel := deadline.Within(ctx, h.timeout, 0)
	defer cancel()
	answer, err := h.asker.Ask(call, h.question, h.timeout)
	if cut := deadline.Cut(call, err); cut != nil {
		return answer, cut
	}
	if err != nil {
		return answer, &callFailure{err}
	}
	if answer.Allowed {
		return answer, nil
	}
	refusal := admissionreview.Refusal(fmt.Sprintf("admission webhook %q", h.name), answer.Result)
	if status := answer.Result; status != nil && status.Code != 0 && status.Code != refusal.Code {
		w.Log.WarnContext(ctx, "a webhook rejected a request with a status code that is not an HTTP error", "webhook", h.name, "configuration", h.configuration,
			"code", status.Code, "answered", refusal.Code)
	}
	return answer, refusal
}
