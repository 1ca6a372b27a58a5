package review

import "github.com/portico-platform/portico/services"

// WrittenPod returns a pod that is to be created or replaced, as a plugin may change it,
// and its spec; nil when the review is about anything else, such as a subresource.
func (r *Review) WrittenPod() (pod, spec map[string]any, err error) {
	if !r.Is(services.OperationCreate, "", "pods") && !r.Is(services.OperationUpdate, "", "pods") {
		return nil, nil, nil
	}
	pod, err = r.Decoded()
	spec, _ = pod["spec"].(map[string]any)
	return pod, spec, err
}
