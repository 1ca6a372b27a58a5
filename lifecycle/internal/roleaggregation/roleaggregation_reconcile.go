package roleaggregation

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/labelselector"
)

// role is a ClusterRole and what it aggregates.
type role struct {
	*unstructured.Unstructured
	aggregates []labels.Selector
}

// reconcile writes the rules of all aggregated roles whose stored rules are others. One that
// cannot be written does not keep the rest from being written.
func (c *Controller) reconcile(ctx context.Context, _ struct{}) (time.Duration, error) {
	roles, err := c.list()
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, r := range roles {
		if len(r.aggregates) == 0 {
			continue
		}
		gathered := gather(r, roles)
		stored, _, _ := unstructured.NestedSlice(r.Object, "rules")
		if len(gathered) == 0 && len(stored) == 0 || equality.Semantic.DeepEqual(gathered, stored) {
			continue
		}
		next := r.DeepCopy()
		next.Object["rules"] = gathered
		_, err := c.roles.Update(ctx, next, metav1.UpdateOptions{FieldManager: "clusterrole-aggregation-controller"})
		errs = append(errs, worker.IgnoreRace(err))
	}
	return 0, errors.Join(errs...)
}

// list returns all roles that are not being deleted, by name.
func (c *Controller) list() (roles []role, err error) {
	for _, item := range c.seen.GetStore().List() {
		o := item.(*unstructured.Unstructured)
		var rule struct {
			AggregationRule struct {
				ClusterRoleSelectors []metav1.LabelSelector `json:"clusterRoleSelectors"`
			} `json:"aggregationRule"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"aggregationRule": o.Object["aggregationRule"]}, &rule); err != nil {
			return nil, err
		}
		r := role{Unstructured: o}
		for i := range rule.AggregationRule.ClusterRoleSelectors {
			selector, err := labelselector.Parse(&rule.AggregationRule.ClusterRoleSelectors[i])
			if err != nil {
				return nil, err
			}
			r.aggregates = append(r.aggregates, selector)
		}
		roles = append(roles, r)
	}
	slices.SortFunc(roles, func(a, b role) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return roles, nil
}

// gather returns the rules of all roles that a role aggregates, directly or indirectly, each
// once. What is stored in roles that aggregate others counts nowhere.
func gather(of role, roles []role) []any {
	seen := map[string]bool{of.GetName(): true}
	var rules []any
	var add func(r role)
	add = func(r role) {
		for _, selector := range r.aggregates {
			for _, candidate := range roles {
				if seen[candidate.GetName()] || !selector.Matches(labels.Set(candidate.GetLabels())) {
					continue
				}
				seen[candidate.GetName()] = true
				if len(candidate.aggregates) > 0 {
					add(candidate)
					continue
				}
				own, _, _ := unstructured.NestedSlice(candidate.Object, "rules")
				for _, rule := range own {
					if !slices.ContainsFunc(rules, func(known any) bool { return equality.Semantic.DeepEqual(known, rule) }) {
						rules = append(rules, rule)
					}
				}
			}
		}
	}
	add(of)
	return rules
}
