package podstandards

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

const (
	// mostPods and longest bound how many of the pods of a namespace are evaluated at a change of its
	// level, and for how long. The rest is not warned about.
	mostPods = 3000
	longest  = time.Second
)

// levels returns the levels that the labels of a namespace name, and what is wrong with them.
func (p Plugin) levels(labels map[string]string) (api.Policy, field.ErrorList) {
	own := p.vocabulary.Qualified("pod-security", "")
	if own != standardPrefix {
		renamed := map[string]string{}
		for name, value := range labels {
			if mode, ok := strings.CutPrefix(name, own); ok {
				renamed[standardPrefix+mode] = value
			}
		}
		labels = renamed
	}
	levels, wrong := api.PolicyToEvaluate(labels, p.config.levels())
	for _, e := range wrong {
		e.Field = strings.Replace(e.Field, standardPrefix, own, 1)
	}
	return levels, wrong
}

// validateNamespace refuses unknown levels, unless a namespace had them before, and warns of pods that
// violate a level that is new.
func (p Plugin) validateNamespace(ctx context.Context, r *review.Review) error {
	object, err := r.Current()
	if err != nil {
		return err
	}
	now, err := p.namespaces.Parse(services.Object{JSON: object})
	if err != nil {
		return services.BadRequest("the namespace is not readable: %v", err)
	}
	levels, wrong := p.levels(now.Labels)
	var before api.Policy
	if r.Operation == services.OperationUpdate {
		was, err := p.namespaces.Parse(services.Object{JSON: r.OldObject})
		if err != nil {
			return services.BadRequest("the namespace is not readable: %v", err)
		}
		old, known := p.levels(was.Labels)
		if len(wrong) > 0 && len(known) > 0 && known.ToAggregate().Error() == wrong.ToAggregate().Error() {
			wrong = nil
		}
		before = old
	}
	if len(wrong) > 0 {
		var causes []services.StatusCause
		for _, e := range wrong {
			causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: e.Field, Message: e.ErrorBody()})
		}
		return services.Invalid(r.Group, r.Kind, r.Name, causes)
	}
	exempt := p.config.exempts(r.Name)
	switch {
	case r.Operation == services.OperationUpdate && !stricter(levels.Enforce, before.Enforce):
	case exempt:
		p.warnExempt(r, levels, now.Labels)
	case r.Operation == services.OperationUpdate:
		return p.warnOfPods(ctx, r, levels.Enforce)
	}
	return nil
}

// stricter reports whether pods may violate a level that did not violate the one before.
func stricter(level, before api.LevelVersion) bool {
	return level != before && level.Level != api.LevelPrivileged &&
		(level.Version != before.Version || api.CompareLevels(level.Level, before.Level) > 0)
}

// warnExempt warns that the labels of an exempt namespace have no effect.
func (p Plugin) warnExempt(r *review.Review, levels api.Policy, labels map[string]string) {
	if defaults := p.config.levels(); levels.FullyPrivileged() || levels.Equivalent(&defaults) {
		return
	}
	var modes []string
	for _, mode := range []struct {
		name  string
		level api.LevelVersion
	}{{"enforce", levels.Enforce}, {"audit", levels.Audit}, {"warn", levels.Warn}} {
		_, level := labels[p.vocabulary.Qualified("pod-security", mode.name)]
		_, version := labels[p.vocabulary.Qualified("pod-security", mode.name+"-version")]
		if (level || version) && mode.level.Level != api.LevelPrivileged {
			modes = append(modes, mode.name+"="+mode.level.String())
		}
	}
	if len(modes) > 0 {
		r.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", r.Name, strings.Join(modes, ", ")))
	}
}

// violation is what pods violate, of which the first by name is named.
type violation struct {
	first string
	pods  int
}

// warnOfPods warns of the pods of a namespace that violate a level. Of the pods of a controller, the
// first is evaluated before the others.
func (p Plugin) warnOfPods(ctx context.Context, r *review.Review, level api.LevelVersion) error {
	wait := longest
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	pods, complete, err := p.pods(ctx, r.Name)
	if err != nil {
		r.Warn("failed to list pods while checking new PodSecurity enforce level")
		return nil
	}
	found, checked := map[string]violation{}, 0
	for _, pod := range pods {
		checked++
		if result := p.evaluate(level, pod); !result.Allowed {
			why := result.ForbiddenReason()
			v := found[why]
			if v.pods++; v.pods == 1 || pod.Name < v.first {
				v.first = pod.Name
			}
			found[why] = v
		}
		if ctx.Err() != nil {
			break
		}
	}
	if checked < len(pods) || !complete {
		r.Warn(fmt.Sprintf("new PodSecurity enforce level only checked against the first %d existing pods", checked))
	}
	if len(found) > 0 {
		r.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", r.Name, level))
	}
	var texts []string
	for why, v := range found {
		texts = append(texts, v.String()+": "+why)
	}
	slices.Sort(texts)
	r.Warn(texts...)
	return nil
}

// String names the pods.
func (v violation) String() string {
	switch v.pods {
	case 1:
		return v.first
	case 2:
		return v.first + " (and 1 other pod)"
	}
	return fmt.Sprintf("%s (and %d other pods)", v.first, v.pods-1)
}

// pods returns the pods of a namespace in the order of their evaluation. complete is false if there
// are more than mostPods.
func (p Plugin) pods(ctx context.Context, namespace string) (pods []*corev1.PodTemplateSpec, complete bool, err error) {
	var others []*corev1.PodTemplateSpec
	seen := map[string]bool{}
	list := services.ListRequest{GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: namespace, Read: services.Read{Mode: services.AnyRevision}}
	for {
		page, err := p.namespaces.Store.List(ctx, list)
		if err != nil {
			return nil, false, err
		}
		for _, o := range page.Objects {
			if len(pods)+len(others) == mostPods {
				return append(pods, others...), false, nil
			}
			pod, err := readPod(o.JSON)
			if err != nil || pod.Spec.RuntimeClassName != nil && slices.Contains(p.config.RuntimeClasses, *pod.Spec.RuntimeClassName) {
				continue
			}
			controller := controllerOf(pod.ObjectMeta)
			if controller != "" && seen[controller] {
				others = append(others, pod)
				continue
			}
			pods, seen[controller] = append(pods, pod), true
		}
		if list.After = page.Next; list.After == "" {
			return append(pods, others...), true, nil
		}
		list.Read = services.Read{Mode: services.Exact, Revision: page.Revision}
	}
}
