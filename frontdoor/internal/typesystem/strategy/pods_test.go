package strategy

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
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

// TestTimesOfLaterReleases: 1.36 notes when a volume entered its phase, unless the client says
// so; 1.21 does not.
func TestTimesOfLaterReleases(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, r := range []release.Release{release.V121, release.V136} {
		w := write(t, "", "persistentvolumes")
		w.Release, w.Now = r, now
		volume := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}}
		w.PrepareCreate(volume)
		status := rules.Object(volume, "status")
		if _, timed := status["lastPhaseTransitionTime"]; timed != (r == release.V136) {
			t.Errorf("%v: a new volume has the status %v", r, status)
		}
		if r == release.V121 {
			continue
		}
		w.Subresource, w.Now = "status", now.Add(time.Hour)
		for phase, want := range map[string]string{"Pending": "2030-01-02T03:04:05Z", "Bound": "2030-01-02T04:04:05Z"} {
			next := map[string]any{"metadata": map[string]any{}, "spec": map[string]any{}, "status": map[string]any{"phase": phase}}
			w.PrepareUpdate(next, volume)
			if got := rules.Object(next, "status")["lastPhaseTransitionTime"]; got != want {
				t.Errorf("%s: %v, want %s", phase, got, want)
			}
		}
	}
}
