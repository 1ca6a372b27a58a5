package fieldmanager

import (
	"testing"
	"time"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestTimesOfUpdates: before release 1.25 an update that changes only values keeps the time of its
// entry, and so the order of the entries.
func TestTimesOfUpdates(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		b := newBenchOf(t, vocabulary.K8s(), r)
		b.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		ty := b.lookup(t, "/v1/configmaps")
		for what, track := range map[string]func(Change) error{
			"quick": b.Track,
			"full":  func(c Change) error { return b.trackFully(c, ownersOf(c.Live), ownersOf(c.New)) },
		} {
			var live map[string]any
			for _, step := range []struct {
				by, data string
				kept     bool // before 1.25
			}{{"one", "{a: v, b: v}", false}, {"two", "{a: v, b: v, c: v}", false}, {"one", "{a: w, b: w, c: v}", true}, {"one", "{a: w, b: v, c: v, d: v}", false}, {"one", "{a: w, b: v, c: w, d: v}", false}} {
				b.now = b.now.Add(time.Minute)
				next := decodeYAML(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: "+step.data+"}")
				if live != nil {
					setOwners(next, ownersOf(live))
				}
				if err := track(Change{Type: ty, Live: live, New: next, Manager: step.by}); err != nil {
					t.Fatal(err)
				}
				live = next
				list := ownersOf(live)
				newest := tree.Text(list[len(list)-1].(map[string]any), "time") == b.now.Format(time.RFC3339)
				if want := r == release.V136 || !step.kept; newest != want {
					t.Errorf("%s, %s, %s by %s: a new time: %v, want %v", r, what, step.data, step.by, newest, want)
				}
			}
		}
	}
}

// TestSettle: different times are not a change.
func TestSettle(t *testing.T) {
	live := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t1}]}, data: {k: v}}")
	next := decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: v}}")
	Settle(live, next)
	if !tree.Equal(live, next) {
		t.Error("the times differ still")
	}
	next = decodeYAML(t, "{metadata: {name: a, managedFields: [{manager: m, time: t2}]}, data: {k: w}}")
	Settle(live, next)
	if tree.Equal(ownersOf(live), ownersOf(next)) {
		t.Error("a change lost its time")
	}
}
