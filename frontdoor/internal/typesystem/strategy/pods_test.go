package strategy

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestSecondDeletionOfPods: while the grace period of a pod runs, only a shorter one counts.
func TestSecondDeletionOfPods(t *testing.T) {
	w := write(t, "", "pods")
	w.Now = time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	foreground := metav1.DeletePropagationForeground
	seconds := func(n int64) metav1.DeleteOptions { return metav1.DeleteOptions{GracePeriodSeconds: &n} }
	for name, x := range map[string]struct {
		options   metav1.DeleteOptions
		at        string
		grace     int64
		finalizer bool
	}{
		"without options":    {metav1.DeleteOptions{}, "2026-01-02T03:05:00Z", 60, false},
		"longer":             {seconds(90), "2026-01-02T03:05:00Z", 60, false},
		"equal":              {seconds(60), "2026-01-02T03:05:00Z", 60, false},
		"shorter":            {seconds(20), "2026-01-02T03:04:20Z", 20, false},
		"over already":       {seconds(5), "2026-01-02T03:04:10Z", 1, false},
		"negative":           {seconds(-1), "2026-01-02T03:04:10Z", 1, false},
		"at once":            {seconds(0), "2026-01-02T03:04:10Z", 0, false},
		"only a propagation": {metav1.DeleteOptions{PropagationPolicy: &foreground}, "2026-01-02T03:05:00Z", 60, false},
		"both":               {metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &foreground}, "2026-01-02T03:04:10Z", 0, true},
	} {
		obj := parse(t, `{metadata: {name: p, generation: 2, deletionTimestamp: "2026-01-02T03:05:00Z", deletionGracePeriodSeconds: 60},
			spec: {nodeName: n, terminationGracePeriodSeconds: 30}, status: {phase: Succeeded}}`)
		w.PrepareDelete(obj, &x.options)
		meta := Metadata(obj)
		grace, _ := number(meta["deletionGracePeriodSeconds"])
		generation, _ := number(meta["generation"])
		if meta["deletionTimestamp"] != x.at || grace != x.grace || (len(Finalizers(obj)) > 0) != x.finalizer || generation != 2 {
			t.Errorf("%s: %v", name, meta)
		}
		if Finished(w.Type, obj) != (x.grace == 0 && !x.finalizer) {
			t.Errorf("%s: finished %v", name, Finished(w.Type, obj))
		}
	}
}
