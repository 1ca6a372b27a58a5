package autoscaling

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/edit"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// noted returns an autoscaler of v1 whose notes all have this text.
func noted(text string) map[string]any {
	object := map[string]any{"spec": map[string]any{}, "status": map[string]any{}}
	for _, name := range allNotes {
		edit.Annotate(object, annotationOf(vocabulary.K8s(), name), text)
	}
	return object
}

// converted returns a converted copy of an object.
func converted(object map[string]any, convert func(vocabulary.Vocabulary, map[string]any)) map[string]any {
	object = runtime.DeepCopyJSON(object)
	convert(vocabulary.K8s(), object)
	return object
}

// TestForeignNotes: annotations that a client wrote cannot put values of other types
// than the fields' own into an object.
func TestForeignNotes(t *testing.T) {
	for _, note := range []string{`{`, `[{"type":5}]`, `[5]`, `{"type":"x"}`, `null`, `[{"type":"Resource","resource":{"name":"cpu","target":[]}}]`,
		`[{"type":"Resource","evil":1}]`} {
		best := converted(noted(note), autoscalerFromV1)
		for _, field := range []string{"metrics", "currentMetrics", "conditions"} {
			for _, item := range append(tree.List(tree.Child(best, "spec"), field), tree.List(tree.Child(best, "status"), field)...) {
				m, _ := item.(map[string]any)
				if kind, _ := m["type"].(string); kind == "" || m["evil"] != nil {
					t.Errorf("%s: %v", note, best)
				}
			}
		}
		if best["metadata"].(map[string]any)["annotations"] != nil {
			t.Errorf("%s: %v", note, best["metadata"])
		}
	}
}

// TestOrderOfNotes: notes have the members of metrics in the order of the published types.
func TestOrderOfNotes(t *testing.T) {
	given := map[string]any{"status": map[string]any{"currentMetrics": []any{map[string]any{"type": "Resource",
		"resource": map[string]any{"name": "cpu", "current": map[string]any{"averageUtilization": int64(1)}}}}}}
	got := tree.Text(converted(given, autoscalerToV1), "metadata", "annotations", annotationOf(vocabulary.K8s(), notedStatuses))
	const want = `[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":1,"currentAverageValue":"0"}}]`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzNotes(f *testing.F) {
	f.Add(`[{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":50}}]`)
	f.Add(`{"ScaleUp":{"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]}}`)
	f.Fuzz(func(t *testing.T, note string) {
		once := converted(noted(note), autoscalerFromV1)
		again := converted(converted(once, autoscalerToV1), autoscalerFromV1)
		if !reflect.DeepEqual(once, again) {
			t.Errorf("%v\nbecame\n%v", once, again)
		}
	})
}
