package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
)

// alwaysPullImages makes new pods pull their images with their own credentials,
// even where an image is on the node already.
func alwaysPullImages(_ context.Context, r *review.Review) error {
	if !r.Is(services.OperationCreate, "", "pods") {
		return nil
	}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	spec, _ := pod["spec"].(map[string]any)
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
