// Package tolerations adds to pods the tolerations that their namespace gives them by
// default, and refuses pods with others than the namespace allows. Both are annotations
// of the namespace; a configuration stands in for those that are missing. It serves
// PodTolerationRestriction under "Admission plugins" of the specification.
package tolerations

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/quantity"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Plugin restricts the tolerations of pods.
type Plugin struct {
	Namespaces namespaces.Known
	Config     Config
	Vocabulary vocabulary.Vocabulary
}

// Mutate adds the default tolerations to new pods, and the one for memory pressure to
// all pods that request something. It refuses like Validate.
func (p Plugin) Mutate(ctx context.Context, r *review.Review) error {
	_, spec, err := r.WrittenPod()
	if err != nil || spec == nil {
		return err
	}
	own, err := tolerationsOf(spec)
	if err != nil {
		return err
	}
	namespace, err := p.Namespaces.Get(ctx, r.Namespace)
	if err != nil {
		return err
	}
	var extra []corev1.Toleration
	if r.Operation == services.OperationCreate {
		if extra, err = annotated(namespace, namespaces.DefaultTolerations, p.Config.Default); err != nil {
			return err
		}
	}
	if !bestEffort(spec) {
		extra = append(extra[:len(extra):len(extra)], corev1.Toleration{
			Key: p.Vocabulary.Qualified("node", "memory-pressure"), Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
	}
	if len(extra) > 0 {
		all := merged(own, extra)
		if !equality.Semantic.DeepEqual(own, all) {
			if spec["tolerations"], err = encoded(all); err != nil {
				return err
			}
			r.Changed()
		}
		own = all
	}
	return p.check(namespace, own)
}

// Validate refuses pods with tolerations that are not allowed, with a 500 as in release
// 1.21.
func (p Plugin) Validate(ctx context.Context, r *review.Review) error {
	_, spec, err := r.WrittenPod()
	if err != nil || spec == nil {
		return err
	}
	own, err := tolerationsOf(spec)
	if err != nil || len(own) == 0 {
		return err
	}
	namespace, err := p.Namespaces.Get(ctx, r.Namespace)
	if err != nil {
		return err
	}
	return p.check(namespace, own)
}

func (p Plugin) check(namespace namespaces.Namespace, own []corev1.Toleration) error {
	if len(own) == 0 {
		return nil
	}
	scope, whitelist := "namespace", p.Config.Whitelist
	if _, ok := namespace.Annotation(namespaces.TolerationsWhitelist); !ok {
		scope = "cluster"
	}
	whitelist, err := annotated(namespace, namespaces.TolerationsWhitelist, whitelist)
	if err != nil {
		return err
	}
	if !allowed(own, whitelist) {
		return review.Failed("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", scope)
	}
	return nil
}

// annotated returns the tolerations in an annotation of a namespace, or others when it
// does not have the annotation.
func annotated(namespace namespaces.Namespace, name string, otherwise []corev1.Toleration) (all []corev1.Toleration, err error) {
	text, ok := namespace.Annotation(name)
	if !ok || text == "null" {
		return otherwise, nil
	}
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, review.Failed("the annotation %s of the namespace is not readable: %v", name, err)
	}
	return all, nil
}

func tolerationsOf(spec map[string]any) (all []corev1.Toleration, err error) {
	list := spec["tolerations"]
	if list == nil {
		return nil, nil
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, services.BadRequest("spec.tolerations is not readable: %v", err)
	}
	return all, nil
}

// encoded returns tolerations as part of an object.
func encoded(all []corev1.Toleration) (any, error) {
	raw, err := json.Marshal(map[string]any{"tolerations": all})
	if err != nil {
		return nil, err
	}
	object, err := tree.Decode(raw)
	return object["tolerations"], err
}

// bestEffort reports whether no container of a pod requests or limits CPU or memory.
func bestEffort(spec map[string]any) bool {
	for _, list := range []string{"containers", "initContainers"} {
		for _, c := range tree.Objects(spec, list) {
			for _, kind := range []string{"requests", "limits"} {
				amounts := tree.Child(c, "resources", kind)
				if positive(amounts["cpu"]) || positive(amounts["memory"]) {
					return false
				}
			}
		}
	}
	return true
}

// positive reports whether a value is a quantity above zero.
func positive(value any) bool {
	if value == nil {
		return false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return false
	}
	q, err := quantity.ParseJSON(raw)
	return err == nil && q.Sign() > 0
}
