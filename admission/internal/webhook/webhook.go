// Package webhook calls admission webhooks as MutatingWebhookConfigurations and
// ValidatingWebhookConfigurations say: mutating ones in sequence, validating ones
// concurrently. It matches requests, validates responses and applies failure policies.
// No webhook is called for the configurations themselves, so that a wrong one can be
// repaired. It implements MutatingAdmissionWebhook and ValidatingAdmissionWebhook under
// "Admission plugins", and "Dry-run", of the specification.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Webhooks calls the configured webhooks.
type Webhooks struct {
	Mutating, Validating review.Collection[Configuration]
	// Labels returns the labels of a namespace, for namespace selectors.
	Labels      func(ctx context.Context, namespace string) (map[string]string, error)
	Expressions *cel.Engine // for match conditions
	Vocabulary  vocabulary.Vocabulary
	Log         *slog.Logger
}

// Mutate calls the mutating webhooks. In the second round it calls those with
// reinvocationPolicy IfNeeded if the object has changed since their first call.
func (w *Webhooks) Mutate(ctx context.Context, r *review.Review) error {
	index := -1
	for _, c := range w.Mutating.List("") {
		for _, hook := range c.hooks {
			index++
			matches, err := w.matches(ctx, hook, r)
			if err != nil {
				return err
			}
			if !matches {
				continue
			}
			if err := w.change(ctx, hook, r, index); err != nil {
				return err
			}
		}
	}
	return nil
}

// change calls one webhook and applies its patch to the object.
func (w *Webhooks) change(ctx context.Context, hook *hook, r *review.Review, index int) error {
	before, err := r.Current()
	if err != nil {
		return err
	}
	if seen, matching := r.Seen[hook.key()]; r.Round > 0 && (!matching || !hook.reinvoke || same(seen, before)) {
		return nil
	}
	answer, err := w.call(ctx, hook, r)
	hook.addNotes(r, answer)
	if err != nil {
		return w.applyFailurePolicy(ctx, hook, r, outcome{err: err, kind: "mutating", index: index})
	}
	after := before
	if len(answer.Patch) > 0 {
		if after, err = patched(ctx, before, answer.Patch); err != nil {
			return w.patchError(ctx, hook, err)
		}
	}
	changed := !same(before, after)
	if changed {
		r.Replace(after)
		r.Again()
	}
	r.Seen[hook.key()] = after
	r.Annotate(map[string]string{
		fmt.Sprintf("%s/round_%d_index_%d", w.Vocabulary.Group("mutation.webhook.admission."), r.Round, index): fmt.Sprintf(
			`{"configuration":%q,"webhook":%q,"mutated":%t}`, hook.configuration, hook.name, changed),
	})
	return nil
}

// same reports whether two objects are equal, regardless of their encoding.
func same(a, b []byte) bool {
	if string(a) == string(b) || len(a) == 0 || len(b) == 0 {
		return string(a) == string(b)
	}
	x, errX := tree.Decode(a)
	y, errY := tree.Decode(b)
	return errX == nil && errY == nil && tree.Equal(x, y)
}

// patchError returns the error of a patch that could not be applied: a failed webhook
// call, unless the request was canceled.
func (w *Webhooks) patchError(ctx context.Context, hook *hook, err error) error {
	if ctx.Err() != nil {
		return services.AsStatus(ctx.Err())
	}
	return failed(hook, err)
}

// patched applies a JSON patch.
func patched(ctx context.Context, object, patch []byte) ([]byte, error) {
	if len(object) == 0 {
		return nil, fmt.Errorf("it patches an object where the operation has none")
	}
	after, err := jsonpatch.Apply(ctx, object, patch)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, jsonpatch.Why(err))
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(after, &o); err != nil {
		return nil, fmt.Errorf("its patch leaves no object: %w", err)
	}
	return after, nil
}

// Validate calls the validating webhooks concurrently. If several reject the request, the
// first in the order of the configurations is returned.
func (w *Webhooks) Validate(ctx context.Context, r *review.Review) error {
	var matching []*hook
	for _, c := range w.Validating.List("") {
		for _, hook := range c.hooks {
			matches, err := w.matches(ctx, hook, r)
			if err != nil {
				return err
			}
			if matches {
				matching = append(matching, hook)
			}
		}
	}
	answers, errs := make([]answer, len(matching)), make([]error, len(matching))
	var group sync.WaitGroup
	for i, hook := range matching {
		group.Go(func() { answers[i], errs[i] = w.call(ctx, hook, r) })
	}
	group.Wait()
	for i, hook := range matching {
		hook.addNotes(r, answers[i])
	}
	for i, hook := range matching {
		if errs[i] == nil {
			continue
		}
		if err := w.applyFailurePolicy(ctx, hook, r, outcome{err: errs[i], kind: "validating", index: i}); err != nil {
			return err
		}
	}
	return nil
}

// outcome is a call that failed or rejected the request.
type outcome struct {
	err   error
	kind  string // mutating or validating
	index int
}

// applyFailurePolicy returns the error of a call, nil if the call failed and the webhook's
// failure policy is Ignore.
func (w *Webhooks) applyFailurePolicy(ctx context.Context, hook *hook, r *review.Review, o outcome) error {
	var failure *callFailure
	switch {
	case !errors.As(o.err, &failure):
		return o.err
	case ctx.Err() != nil:
		return services.AsStatus(ctx.Err())
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
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError,
		Message: fmt.Sprintf("Internal error occurred: failed calling webhook %q: %v", hook.name, err)}
}

// addNotes adds the warnings and audit annotations of a webhook to the review.
func (h *hook) addNotes(r *review.Review, a answer) {
	r.Warn(a.Warnings...)
	for key, value := range a.AuditAnnotations {
		r.Annotate(map[string]string{h.name + "/" + key: value})
	}
}

// exempt reports whether the object of the review is a webhook configuration.
func (w *Webhooks) exempt(r *review.Review) bool {
	return r.Group == w.Vocabulary.Group("admissionregistration.") && strings.HasSuffix(r.Resource, "webhookconfigurations")
}
