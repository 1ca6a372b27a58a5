package plugin

import (
	"context"

	"github.com/portico-platform/portico/admission/internal/review"
)

// alwaysPullImages makes new pods pull their images with their own credentials,
// even where an image is on the node already.
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
