package plugin

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/portico-platform/portico/admission/internal/review"
)

// podNodeSelector restricts the pods of a namespace to the nodes selected by an annotation
// of the namespace.
type podNodeSelector struct{ namespaces namespaces }

func (p podNodeSelector) mutate(ctx context.Context, r *review.Review) error {
	own, required, err := p.selectors(ctx, r)
	if err != nil || len(required) == 0 {
		return err
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
	merged := map[string]any{}
	for key, value := range labels.Merge(own, required) {
		merged[key] = value
	}
	spec["nodeSelector"] = merged
	r.Changed()
	return nil
}

// validate rejects pods whose selector was changed to a conflicting one after mutate.
func (p podNodeSelector) validate(ctx context.Context, r *review.Review) error {
	_, _, err := p.selectors(ctx, r)
	return err
}

// selectors returns the node selectors of a new pod and of its namespace, or Forbidden if
// they conflict. Both are nil if the request creates no pod or the namespace has none.
func (p podNodeSelector) selectors(ctx context.Context, r *review.Review) (own, required labels.Set, err error) {
	_, spec, err := r.NewPod()
	if err != nil || spec == nil {
		return nil, nil, err
	}
	namespace, err := p.namespaces.get(ctx, r.Namespace)
	if err != nil || namespace.NodeSelector == "" {
		return nil, nil, err
	}
	if required, err = labels.ConvertSelectorToLabelsMap(namespace.NodeSelector); err != nil {
		return nil, nil, r.Forbid("the node selector of namespace %s is not readable: %v", r.Namespace, err)
	}
	given, _ := spec["nodeSelector"].(map[string]any)
	own = labels.Set{}
	for key, value := range given {
		own[key], _ = value.(string)
	}
	if labels.Conflicts(own, required) {
		return nil, nil, r.Forbid("pod node label selector conflicts with its namespace node label selector")
	}
	return own, required, nil
}
