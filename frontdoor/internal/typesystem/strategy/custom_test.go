package strategy

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestStatusOfCustomTypes(t *testing.T) {
	w := Write{Vocabulary: vocabulary.K8s(), Subresource: "status", Type: &catalogue.Type{Custom: true, Kind: "Widget",
		Key: resource.GroupResource{Group: "example.com", Resource: "widgets"}}}
	old := map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{"old": "1"}}, "spec": "old"}
	next := map[string]any{"metadata": map[string]any{"name": "a", "resourceVersion": "7", "labels": map[string]any{"new": "1"},
		"annotations": map[string]any{"new": "1"}, "finalizers": []any{"new/one"}, "managedFields": []any{}}, "spec": "new", "status": "new"}
	w.PrepareUpdate(next, old)
	meta := Metadata(next)
	if next["spec"] != "old" || next["status"] != "new" || meta["resourceVersion"] != "7" || meta["managedFields"] == nil {
		t.Errorf("%v", next)
	}
	if labels := meta["labels"].(map[string]any); labels["old"] != "1" || labels["new"] != nil || meta["annotations"] != nil || meta["finalizers"] != nil {
		t.Errorf("metadata: %v", meta)
	}
}

func TestDeletionCounts(t *testing.T) {
	v := vocabulary.K8s()
	for key, want := range map[resource.GroupResource]int64{
		{Group: "example.com", Resource: "widgets"}:                               3,
		{Group: v.Group("apiextensions."), Resource: "customresourcedefinitions"}: 2,
	} {
		w := Write{Vocabulary: v, Now: time.Unix(0, 0), Type: &catalogue.Type{Key: key}}
		object := map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(2), "finalizers": []any{"a/b"}}}
		for range 2 { // the second deletion is none
			w.PrepareDelete(object, &metav1.DeleteOptions{})
		}
		if got := Metadata(object)["generation"]; got != want {
			t.Errorf("%s: generation %v, want %d", key, got, want)
		}
	}
}
