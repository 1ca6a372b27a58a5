// Package webhook asks remote services about requests, as WebhookConfigurations say:
// one after the other those that may change the object, all at once those that may
// only refuse. It decides which of them are asked, what their silence means and
// whether their answers are valid; what they answer is up to them.
// Nobody is asked about the configurations themselves, so that a wrong one can be
// put right. It serves MutatingAdmissionWebhook and ValidatingAdmissionWebhook under
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
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Webhooks are all that are configured.
type Webhooks struct {
	Mutating, Validating review.Collection[Configuration]
	// Labels returns those of a namespace, for the webhooks that select by them.
	Labels     func(ctx context.Context, namespace string) (map[string]string, error)
	Vocabulary vocabulary.Vocabulary
	Log        *slog.Logger
}

// Mutate lets the webhooks change the object. In the second round it asks those that
// want to see again what others have changed since.
func (w *Webhooks) Mutate(ctx context.Context, r *review.Review) error {
	index := -1
	for _, c := range w.Mutating.List("") {
		for _, hook := range c.hooks {
			index++
			wanted, err := w.wanted(ctx, hook, r)
			if err != nil {
				return err
			}
			if !wanted {
				continue
			}
			if err := w.change(ctx, hook, r, index); err != nil {
				return err
			}
		}
	}
	return nil
}

// change asks one webhook and does to the object what it answers.
func (w *Webhooks) change(ctx context.Context, hook *hook, r *review.Review, index int) error {
	before, err := r.Current()
	if err != nil {
		return err
	}
	if seen, asked := r.Seen[hook.key()]; r.Round > 0 && (!asked || !hook.again || same(seen, before)) {
		return nil
	}
	answer, err := w.ask(ctx, hook, r)
	hook.pass(r, answer)
	if err != nil {
		return w.judge(ctx, hook, r, outcome{err: err, kind: "mutating", index: index})
	}
	after := before
	if len(answer.Patch) > 0 {
		if after, err = patched(ctx, before, answer.Patch); err != nil {
			return w.judgePatch(ctx, hook, err)
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

// same reports whether two objects are equal, however they are written.
func same(a, b []byte) bool {
	if string(a) == string(b) || len(a) == 0 || len(b) == 0 {
		return string(a) == string(b)
	}
	x, errX := tree.Decode(a)
	y, errY := tree.Decode(b)
	return errX == nil && errY == nil && tree.Equal(x, y)
}

// judgePatch is the error of a patch that could not be applied: the webhook's fault,
// unless the request is over.
func (w *Webhooks) judgePatch(ctx context.Context, hook *hook, err error) error {
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

// Validate lets the webhooks refuse the object, all at the same time. Of several
// refusals the first in the order of the configurations counts.
func (w *Webhooks) Validate(ctx context.Context, r *review.Review) error {
	var asked []*hook
	for _, c := range w.Validating.List("") {
		for _, hook := range c.hooks {
			wanted, err := w.wanted(ctx, hook, r)
			if err != nil {
				return err
			}
			if wanted {
				asked = append(asked, hook)
			}
		}
	}
	answers, errs := make([]answer, len(asked)), make([]error, len(asked))
	var group sync.WaitGroup
	for i, hook := range asked {
		group.Go(func() { answers[i], errs[i] = w.ask(ctx, hook, r) })
	}
	group.Wait()
	for i, hook := range asked {
		hook.pass(r, answers[i])
	}
	for i, hook := range asked {
		if errs[i] == nil {
			continue
		}
		if err := w.judge(ctx, hook, r, outcome{err: errs[i], kind: "validating", index: i}); err != nil {
			return err
		}
	}
	return nil
}

// outcome is how the asking of a webhook has ended that has not admitted the object.
type outcome struct {
	err   error
	kind  string // mutating or validating
	index int
}

// judge says what that means: a webhook that cannot be asked may be one that is
// better passed over.
func (w *Webhooks) judge(ctx context.Context, hook *hook, r *review.Review, o outcome) error {
	var failure *callFailure
	switch {
	case !errors.As(o.err, &failure):
		return o.err
	case ctx.Err() != nil:
		return services.AsStatus(ctx.Err())
	case !hook.ignorable:
		return failed(hook, failure.err)
	}
	w.Log.Warn("a webhook cannot be asked and is passed over", "webhook", hook.name, "configuration", hook.configuration, "error", failure.err)
	r.Annotate(map[string]string{
		fmt.Sprintf("%s/round_%d_index_%d", w.Vocabulary.Group("failed-open."+o.kind+".webhook.admission."), r.Round, o.index): hook.name})
	return nil
}

// failed is the 500 that a webhook makes of a request when it must be asked and
// cannot be.
func failed(hook *hook, err error) *services.Status {
	return &services.Status{Code: http.StatusInternalServerError, Reason: services.ReasonInternalError,
		Message: fmt.Sprintf("Internal error occurred: failed calling webhook %q: %v", hook.name, err)}
}

// pass keeps what a webhook has to say beside its answer.
func (h *hook) pass(r *review.Review, a answer) {
	r.Warn(a.Warnings...)
	for key, value := range a.AuditAnnotations {
		r.Annotate(map[string]string{h.name + "/" + key: value})
	}
}

// exempt reports whether the review is about the configuration of webhooks.
func (w *Webhooks) exempt(r *review.Review) bool {
	return r.Group == w.Vocabulary.Group("admissionregistration.") && strings.HasSuffix(r.Resource, "webhookconfigurations")
}
