package strategy

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestStatusOfCustomTypes(t *testing.T) {
	w := Write{Vocabulary: vocabulary.K8s(), Subresource: "status", Type: &catalogue.Type{Custom: true, Kind: "Widget", Behavior: kinds.CustomBehavior(),
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

// TestNullIsAChange: a field that becomes null is a change of a custom object, except its status if that
// has a path of its own.
func TestNullIsAChange(t *testing.T) {
	for field, counts := range map[string]bool{"status": true, "other": true} {
		w := Write{Vocabulary: vocabulary.K8s(), Type: &catalogue.Type{Custom: true, Kind: "Widget", Behavior: kinds.CustomBehavior()}}
		for range 2 {
			next, old := map[string]any{"metadata": map[string]any{}, field: nil}, map[string]any{"metadata": map[string]any{"generation": int64(3)}}
			w.Count(next, old)
			if want := map[bool]int64{true: 4, false: 3}[counts]; Metadata(next)["generation"] != want {
				t.Errorf("%s: %v, want %d", field, next, want)
			}
			w.Type.Subresources = map[string]*catalogue.Subresource{"status": {}}
			counts = field != "status"
		}
	}
}

// terminating marks definitions like package crd.
type terminating struct{ Definitions }

func (terminating) MarkTerminating(obj map[string]any, now time.Time) {
	crd.MarkTerminating(obj, vocabulary.K8s(), now)
}

// TestDeletionOfADefinition: the first deletion has no propagation policy, because the objects
// go first; the second one has.
func TestDeletionOfADefinition(t *testing.T) {
	w := write(t, "apiextensions.k8s.io", "customresourcedefinitions")
	w.Definitions = terminating{}
	foreground := metav1.DeletePropagationForeground
	object := map[string]any{"metadata": map[string]any{"name": "a"}}
	w.PrepareDelete(object, &metav1.DeleteOptions{PropagationPolicy: &foreground})
	meta := Metadata(object)
	cleanup := vocabulary.K8s().DefinitionFinalizer()
	if got := rules.List(meta, "finalizers"); !Deleting(object) || !reflect.DeepEqual(got, []any{cleanup}) || meta["deletionGracePeriodSeconds"] != nil {
		t.Errorf("first: %v", meta)
	}
	w.PrepareDelete(object, &metav1.DeleteOptions{PropagationPolicy: &foreground})
	if got := rules.List(meta, "finalizers"); !reflect.DeepEqual(got, []any{cleanup, "foregroundDeletion"}) || meta["deletionGracePeriodSeconds"] != int64(0) {
		t.Errorf("second: %v", meta)
	}
	other := "other"
	err := CheckPreconditions(w.Type, &metav1.Preconditions{ResourceVersion: &other}, services.Object{Key: resource.Key{Name: "a"}, Revision: 7})
	const want = `Operation cannot be fulfilled on customresourcedefinitions.apiextensions.k8s.io "a": Precondition failed: ResourceVersion in precondition: other, ResourceVersion in object meta: 7`
	if status := services.AsStatus(err); status.Code != 409 || status.Message != want {
		t.Errorf("precondition: %v", err)
	}
	err = CheckPreconditions(write(t, "", "namespaces").Type, &metav1.Preconditions{UID: (*types.UID)(&other)}, services.Object{Key: resource.Key{Name: "a"}, UID: "u"})
	if got := services.AsStatus(err).Message; got != `Operation cannot be fulfilled on namespaces "a": Precondition failed: UID in precondition: other, UID in object meta: u` {
		t.Errorf("precondition of a namespace: %v", err)
	}
}

// TestDeletionCounts: a deletion request increments the generation of a custom resource,
// but not that of its definition.
func TestDeletionCounts(t *testing.T) {
	definition := write(t, "apiextensions.k8s.io", "customresourcedefinitions")
	definition.Definitions = terminating{}
	widget := definition
	widget.Type = &catalogue.Type{Custom: true, Kind: "Widget", Behavior: kinds.CustomBehavior()}
	for want, w := range map[int64]Write{3: widget, 2: definition} {
		object := map[string]any{"metadata": map[string]any{"name": "a", "generation": int64(2), "finalizers": []any{"a/b"}}}
		for range 2 { // the second request changes nothing
			w.PrepareDelete(object, &metav1.DeleteOptions{})
		}
		if got := Metadata(object)["generation"]; got != want {
			t.Errorf("%s: generation %v, want %d", w.Type.Kind, got, want)
		}
	}
}
