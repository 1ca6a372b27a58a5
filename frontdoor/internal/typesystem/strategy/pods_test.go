package strategy

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// TestGrace: only a pod on a node gets time to end, and never less than none.
func TestGrace(t *testing.T) {
	pods := catalogue.Type{Kind: "Pod"}
	pods.Key.Resource = "pods"
	for name, c := range map[string]struct {
		spec  string
		asked *int64
		want  int64
	}{
		"no node":              {`{terminationGracePeriodSeconds: 5}`, nil, 0},
		"its own":              {`{nodeName: here, terminationGracePeriodSeconds: 5}`, nil, 5},
		"less than none":       {`{nodeName: here, terminationGracePeriodSeconds: -5}`, nil, 1},
		"asked":                {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(7)), 7},
		"at once":              {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(0)), 0},
		"asked less than none": {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(-1)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := Write{Type: &pods}
			if got := w.grace(spec(t, c.spec), &metav1.DeleteOptions{GracePeriodSeconds: c.asked}); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestStatusTakesMetadataAlong: a write of the status changes labels too, except
// where the type keeps them.
func TestStatusTakesMetadataAlong(t *testing.T) {
	for kind, want := range map[string][]string{
		"Pod":        {"labels", "annotations", "finalizers"},
		"Job":        {"labels", "annotations", "finalizers", "ownerReferences"},
		"Deployment": {"annotations", "finalizers", "ownerReferences"},
		"FlowSchema": nil,
	} {
		w := Write{Type: &catalogue.Type{Kind: kind}, Subresource: "status"}
		obj := map[string]any{"metadata": map[string]any{"labels": 1, "annotations": 1, "finalizers": 1, "ownerReferences": 1}}
		w.keepAllButStatus(obj, map[string]any{"metadata": map[string]any{}})
		for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			if _, changed := Metadata(obj)[field]; changed != slices.Contains(want, field) {
				t.Errorf("%s: %s changed: %v", kind, field, changed)
			}
		}
	}
}

// TestDeletionStays: an update cannot take back a deletion; that it cannot ask for one
// is left to be told.
func TestDeletionStays(t *testing.T) {
	w := Write{Type: &catalogue.Type{Kind: "Pod"}}
	going := map[string]any{"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": int64(5)}
	for name, c := range map[string]struct{ old, next, want map[string]any }{
		"taken back": {going, map[string]any{}, going},
		"asked for":  {map[string]any{}, going, going},
	} {
		t.Run(name, func(t *testing.T) {
			obj := map[string]any{"metadata": maps.Clone(c.next)}
			w.PrepareUpdate(obj, map[string]any{"metadata": c.old})
			for field, want := range c.want {
				if got := Metadata(obj)[field]; got != want {
					t.Errorf("%s is %v, want %v", field, got, want)
				}
			}
		})
	}
}
