package main

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/portico-platform/portico/admission/sdk"
)

// retryAfter is when a client tries again whose pod does not fit only because of others that
// are being created.
const retryAfter = 2

// validate refuses new pods that exceed the budget of their namespace.
func (l *limits) validate(_ context.Context, r *sdk.Review) error {
	if !r.Is("", "pods") || r.Operation != sdk.Create || r.Object == nil {
		return nil
	}
	var pod corev1.Pod
	if err := r.Decode(&pod); err != nil {
		return err
	}
	c := l.config.Get()
	// A name that the API is yet to generate is unknown here: the review stands for it.
	name := cmp.Or(pod.Name, r.Name, "review "+r.UID)
	of := amountsOf(&pod)
	v := l.ledger.take(ask{r.Namespace, name, of, !r.DryRun}, c)
	if v.admitted {
		return nil
	}
	budget, _ := c.budget(r.Namespace)
	cost := c.cost(of)
	r.Audit("cost", money(cost))
	if cost <= v.left {
		return r.Retry(retryAfter, "it costs %s an hour; of the budget of %s, %s is left, but %s of that is held for pods that are being created",
			money(cost), money(budget), money(v.left), money(v.held))
	}
	return r.Forbid("it costs %s an hour; of the budget of %s, %s is left", money(cost), money(budget), money(max(0, v.left)))
}
