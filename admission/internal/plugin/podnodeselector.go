package plugin

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/review"
)

// podNodeSelector keeps the pods of a namespace on the nodes that an annotation of the
// namespace selects.
type podNodeSelector struct{ namespaces namespaces }

func (p podNodeSelector) mutate(ctx context.Context, r *review.Review) error {
	own, wanted, err := p.selectors(ctx, r)
	if err != nil || len(wanted) == 0 {
		return err
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
	merged := map[string]any{}
	for key, value := range labels.Merge(own, wanted) {
		merged[key] = value
	}
	spec["nodeSelector"] = merged
	r.Changed()
	return nil
}

// validate refuses pods that have been given another selector since.
func (p podNodeSelector) validate(ctx context.Context, r *review.Review) error {
	_, _, err := p.selectors(ctx, r)
	return err
}

// selectors returns those of a new pod and of its namespace; they must not contradict
// each other.
func (p podNodeSelector) selectors(ctx context.Context, r *review.Review) (own, wanted labels.Set, err error) {
	_, spec, err := r.NewPod()
	if err != nil || spec == nil {
		return nil, nil, err
	}
	namespace, err := p.namespaces.get(ctx, r.Namespace)
	if err != nil || namespace.NodeSelector == "" {
		return nil, nil, err
	}
	if wanted, err = labels.ConvertSelectorToLabelsMap(namespace.NodeSelector); err != nil {
		return nil, nil, r.Forbid("the node selector of namespace %s is not readable: %v", r.Namespace, err)
	}
	given, _ := spec["nodeSelector"].(map[string]any)
	own = labels.Set{}
	for key, value := range given {
		own[key], _ = value.(string)
	}
	if labels.Conflicts(own, wanted) {
		return nil, nil, r.Forbid("pod node label selector conflicts with its namespace node label selector")
	}
	return own, wanted, nil
}
