package subresources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/labelselector"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// budgets is where pod disruption budgets are kept.
var budgets = resource.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// mostDisrupted bounds the evictions that a budget's controller has not yet counted.
const mostDisrupted = 2000

// evict deletes a pod if the budget that it counts in allows it, and notes that in
// the budget before.
func (h *Handlers) evict(w http.ResponseWriter, r *request.Request) error {
	named := r.Engine.BodyType(r.Type, r.Subresource)
	older, newer := *named, *named
	older.Version, newer.Version = "v1beta1", "v1"
	a, err := h.read(w, r, &older, &newer)
	if err != nil {
		return err
	}
	if err := h.admit(w, a); err != nil {
		return err
	}
	eviction, err := as[policyv1.Eviction](a.body)
	if err != nil {
		return err
	}
	options := eviction.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := r.CheckDeleteOptions(options); err != nil {
		return err
	}
	removal := writes.Removal{Request: r, Key: r.Key(), Options: options, DryRun: a.options.DryRun || request.DryRun(options.DryRun)}
	for attempt := 1; ; attempt++ {
		again, err := h.evictOnce(a, removal)
		switch {
		case err == nil:
			h.done(w, a)
			return nil
		case !again || attempt == mostAttempts || r.Context().Err() != nil:
			return err
		}
	}
}

// mostAttempts bounds the evictions of a pod that changes while it is evicted.
const mostAttempts = 10

// evictOnce evicts the pod as it is now. again reports whether the error is that the pod changed
// before it was deleted: it may count in a budget now, which it did not.
func (h *Handlers) evictOnce(a *action, removal writes.Removal) (again bool, err error) {
	live, err := h.Store.Get(a.Context(), services.GetRequest{Key: a.Key()})
	if err != nil {
		return false, err
	}
	pod, err := a.Engine.DecodeStored(a.Context(), live, a.Type)
	if err != nil {
		return false, err
	}
	uncounted, free := "", harmless(pod)
	if !free {
		if uncounted, err = h.spend(a.Context(), a, pod, removal.DryRun); err != nil {
			return false, err
		}
	}
	unchanged := (free && !over(pod) || uncounted != "") && !givesVersion(removal.Options)
	if unchanged {
		removal.Options = atVersion(removal.Options, live)
	}
	if removal.Options, err = h.announce(a, removal.Options, removal.DryRun); err == nil {
		err = h.Writes.Remove(a.Context(), removal)
	}
	if uncounted != "" && unchanged && services.IsConflict(err) {
		return false, stillProcessed(uncounted)
	}
	return unchanged && services.IsConflict(err), err
}

// announced is the first release that announces evictions to the controllers of pods.
var announced, _ = release.Of("1.26")

// announce sets the condition of a pod by which its controllers distinguish an eviction from a
// failure. It returns the options for the deletion of the changed pod.
func (h *Handlers) announce(a *action, options *metav1.DeleteOptions, dryRun bool) (*metav1.DeleteOptions, error) {
	if dryRun || a.Engine.Types.Release().Before(announced) {
		return options, nil
	}
	var marked services.Object
	err := h.Writes.Amend(a.Context(), amend.Amendment{Engine: a.Engine, Type: a.Engine.Types.Stored(pods), Key: a.Key(),
		Preconditions: options.Preconditions, Amended: &marked,
		Change: func(pod map[string]any) error {
			condition := conditions.New(string(corev1.DisruptionTarget), "True", "EvictionByEvictionAPI", "Eviction API: evicting")
			condition["lastProbeTime"] = nil
			conditions.Set(tree.Object(pod, "status"), condition, h.Now().UTC().Format(time.RFC3339))
			return nil
		}})
	if err == nil && givesVersion(options) && marked.Revision != 0 {
		options = atVersion(options, marked)
	}
	return options, err
}

// givesVersion reports whether a deletion has a precondition on the resourceVersion.
func givesVersion(options *metav1.DeleteOptions) bool {
	return options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
}

// atVersion returns the options of a deletion with the resourceVersion of an object as
// precondition.
func atVersion(options *metav1.DeleteOptions, object services.Object) *metav1.DeleteOptions {
	version := resource.FormatResourceVersion(object.Revision)
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	options.Preconditions.ResourceVersion = &version
	return options
}

// harmless reports whether a pod does not serve: it is over, or has not begun.
func harmless(pod map[string]any) bool {
	return over(pod) || tree.Text(pod, "status", "phase") == "Pending"
}

// over reports whether a pod has ended or is being deleted. Nothing changes that.
func over(pod map[string]any) bool {
	phase := tree.Text(pod, "status", "phase")
	return phase == "Succeeded" || phase == "Failed" || strategy.Deleting(pod)
}

// spend takes one disruption from the budget of a pod; nothing when it has none.
// TooManyRequests (429) when the budget allows none now. uncounted is the name of the budget
// if the pod does not count in it.
func (h *Handlers) spend(ctx context.Context, a *action, pod map[string]any, dryRun bool) (uncounted string, err error) {
	t := a.Engine.Types.Stored(budgets) // v1, served or not
	matching, err := h.budgetsOf(ctx, a, t, pod)
	switch {
	case err != nil || len(matching) == 0:
		return "", err
	case len(matching) > 1:
		return "", fmt.Errorf("pod %q has more than one pod disruption budget, which eviction does not support", a.Name)
	}
	err = h.Writes.Amend(ctx, amend.Amendment{Engine: a.Engine, Type: t, Key: matching[0], DryRun: dryRun,
		Change: func(budget map[string]any) (err error) {
			uncounted, err = h.decrement(budget, pod)
			return err
		}})
	return uncounted, err
}

// budgetsOf returns the budgets that select a pod.
func (h *Handlers) budgetsOf(ctx context.Context, a *action, t *catalogue.Type, pod map[string]any) (keys []resource.Key, err error) {
	podLabels, _, _ := unstructured.NestedStringMap(pod, "metadata", "labels")
	list := services.ListRequest{GroupResource: t.Key, Namespace: a.Namespace}
	_, err = services.ForEach(ctx, h.Store, list, func(object services.Object) error {
		decoded, err := a.Engine.DecodeStored(ctx, object, t)
		if err != nil {
			return err
		}
		budget, err := as[policyv1.PodDisruptionBudget](decoded)
		if err != nil {
			return err
		}
		selector, err := labelselector.Parse(budget.Spec.Selector)
		if err == nil && selector.Matches(labels.Set(podLabels)) { // a wrong selector selects nothing
			keys = append(keys, object.Key)
		}
		return nil
	})
	return keys, err
}

// decrement takes one disruption from a budget and notes the pod in it, until its
// controller sees the pod go. A pod that is not ready does not count as long as enough others
// are, or if the budget says so; uncounted is then the name of the budget.
func (h *Handlers) decrement(object, pod map[string]any) (uncounted string, err error) {
	budget, err := as[policyv1.PodDisruptionBudget](object)
	if err != nil {
		return "", err
	}
	s := budget.Status
	anyway := budget.Spec.UnhealthyPodEvictionPolicy
	switch {
	case !ready(pod) && anyway != nil && *anyway == policyv1.AlwaysAllow:
		return budget.Name, nil
	case !ready(pod) && s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy:
		return budget.Name, nil
	case s.ObservedGeneration < budget.Generation:
		return "", stillProcessed(budget.Name)
	case s.DisruptionsAllowed < 0:
		return "", services.Forbidden("policy", "poddisruptionbudget", budget.Name, "pdb disruptions allowed is negative")
	case len(s.DisruptedPods) > mostDisrupted:
		return "", services.Forbidden("policy", "poddisruptionbudget", budget.Name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
	case s.DisruptionsAllowed == 0:
		return "", tooMany(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, s.DesiredHealthy, s.CurrentHealthy))
	}
	status := tree.Object(object, "status")
	status["disruptionsAllowed"] = int64(s.DisruptionsAllowed - 1)
	if s.DisruptionsAllowed == 1 {
		none := conditions.New(policyv1.DisruptionAllowedCondition, "False", policyv1.InsufficientPodsReason, "")
		none["observedGeneration"] = s.ObservedGeneration
		conditions.Set(status, none, h.Now().UTC().Format(time.RFC3339))
	}
	tree.Object(status, "disruptedPods")[tree.Text(pod, "metadata", "name")] = h.Now().UTC().Format(time.RFC3339)
	return "", nil
}

// stillProcessed is the 429 of a budget whose status is out of date.
func stillProcessed(budget string) error {
	return tooMany(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

// tooMany is the 429 of a budget that allows no disruption now.
func tooMany(retryAfter int32, why string) error {
	return &services.Status{Code: http.StatusTooManyRequests, Reason: services.ReasonTooManyRequests,
		Message: "Cannot evict pod as it would violate the pod's disruption budget.",
		Details: &services.StatusDetails{RetryAfterSeconds: retryAfter,
			Causes: []services.StatusCause{{Reason: string(policyv1.DisruptionBudgetCause), Message: why}}}}
}

// ready reports whether a pod's condition Ready is true.
func ready(pod map[string]any) bool {
	return conditions.True(tree.Child(pod, "status"), "Ready")
}
