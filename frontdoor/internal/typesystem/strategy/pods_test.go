package strategy

import (
	"maps"
	"slices"
	"testing"
)

// TestStatusTakesMetadataAlong: a write of the status changes labels too, unless the type
// keeps them.
func TestStatusTakesMetadataAlong(t *testing.T) {
	for name, want := range map[[2]string][]string{
		{"", "pods"}:                            {"labels", "annotations", "finalizers"},
		{"batch", "jobs"}:                       {"labels", "annotations", "finalizers", "ownerReferences"},
		{"apps", "deployments"}:                 {"annotations", "finalizers", "ownerReferences"},
		{"storage.k8s.io", "volumeattachments"}: nil,
	} {
		w := write(t, name[0], name[1])
		w.Subresource = "status"
		obj := map[string]any{"metadata": map[string]any{"labels": 1, "annotations": 1, "finalizers": 1, "ownerReferences": 1}}
		w.keepAllButStatus(obj, map[string]any{"metadata": map[string]any{}})
		for _, field := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
			if _, changed := Metadata(obj)[field]; changed != slices.Contains(want, field) {
				t.Errorf("%s: %s changed: %v", name, field, changed)
			}
		}
	}
}

// TestDeletionIsFinal: an update cannot undo a deletion. Validation rejects an update that
// requests one.
func TestDeletionIsFinal(t *testing.T) {
	w := write(t, "", "pods")
	going := map[string]any{"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": int64(5)}
	for name, c := range map[string]struct{ old, next, want map[string]any }{
		"taken back": {going, map[string]any{}, going},
		"requested":  {map[string]any{}, going, going},
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
