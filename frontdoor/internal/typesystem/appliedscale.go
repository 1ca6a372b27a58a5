package typesystem

import (
	"cmp"
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// OwnsAppliedScale reports whether who applies a Scale owns the replicas of the object, as in
// Kubernetes since release 1.22. The specification does not track it.
func (e *Engine) OwnsAppliedScale(s *catalogue.Subresource) bool {
	return s != nil && s.Kind == "Scale" && e.options.Vocabulary.Behaviour.ScaleTracksOwners && !e.Types.Release().Before(release.V136)
}

// ApplyScale records the owners of the replicas in next, which is the current object with the
// replicas of an applied Scale, the body of r. It returns Conflict (409) if another manager
// owns other replicas.
func (e *Engine) ApplyScale(ctx context.Context, r fieldmanager.PatchRequest, s *catalogue.Subresource, next map[string]any) error {
	var config struct {
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(r.Body, &config); err != nil {
		return err // it has been read before
	}
	object := map[string]any{"apiVersion": r.Type.APIVersion(), "kind": r.Type.Kind, "metadata": map[string]any{"name": tree.Text(r.Current, "metadata", "name")}}
	if n := config.Spec.Replicas; n != nil {
		if err := unstructured.SetNestedField(object, *n, cmp.Or(s.Scale, usualScale).Replicas...); err != nil {
			return err
		}
	}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	r.Body = body
	applied, _, err := e.Merge.Patch(ctx, r)
	if err != nil {
		return err
	}
	delete(strategy.Metadata(next), "managedFields")
	if owners := tree.List(applied, "metadata", "managedFields"); len(owners) > 0 {
		strategy.Metadata(next)["managedFields"] = owners
	}
	return nil
}
