package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
)

// alwaysPullImages sets imagePullPolicy Always on new pods, so that a pod needs pull
// credentials even for images that are already on the node.
func alwaysPullImages(_ context.Context, r *review.Review) error {
	_, spec, err := r.NewPod()
	if err != nil {
		return err
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			if container, ok := c.(map[string]any); ok && container["imagePullPolicy"] != "Always" {
				container["imagePullPolicy"] = "Always"
				r.Changed()
			}
		}
	}
	return nil
}
