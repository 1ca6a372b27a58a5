package strategy

import (
	"reflect"
	"testing"
)

// TestStatusTakesAlong: the metadata that a write of the status can change.
func TestStatusTakesAlong(t *testing.T) {
	metadata := func(of string) map[string]any {
		return map[string]any{"labels": of, "annotations": of, "ownerReferences": of, "finalizers": of}
	}
	for name, kept := range map[[2]string][]string{
		{"", "nodes"}: nil, {"apps", "deployments"}: {"labels"}, {"", "pods"}: {"ownerReferences"},
		{"storage.k8s.io", "volumeattachments"}: {"labels", "annotations", "ownerReferences", "finalizers"},
	} {
		w := write(t, name[0], name[1])
		w.Subresource = "status"
		obj := map[string]any{"metadata": metadata("new"), "spec": "new", "status": "new"}
		w.PrepareUpdate(obj, map[string]any{"metadata": metadata("old"), "spec": "old", "status": "old"})
		want := map[string]any{"metadata": metadata("new"), "spec": "old", "status": "new"}
		for _, field := range kept {
			Metadata(want)[field] = "old"
		}
		if !reflect.DeepEqual(obj, want) {
			t.Errorf("%s: %v, want %v", name, obj, want)
		}
	}
}

// TestOmittedMetadata: an update may omit metadata that does not change, and validation
// sees what it changes.
func TestOmittedMetadata(t *testing.T) {
	w := write(t, "", "configmaps")
	old := map[string]any{"metadata": map[string]any{"uid": "a", "creationTimestamp": "then", "generateName": "x"}}
	obj := map[string]any{}
	w.PrepareUpdate(obj, old)
	if want := map[string]any{"uid": "a", "creationTimestamp": "then"}; !reflect.DeepEqual(Metadata(obj), want) {
		t.Errorf("%v, want %v", Metadata(obj), want)
	}
	obj = map[string]any{"metadata": map[string]any{"uid": "b", "creationTimestamp": "now", "deletionTimestamp": "soon"}}
	w.PrepareUpdate(obj, old)
	if want := map[string]any{"uid": "b", "creationTimestamp": "then", "deletionTimestamp": "soon"}; !reflect.DeepEqual(Metadata(obj), want) {
		t.Errorf("%v, want %v", Metadata(obj), want)
	}
}

// TestDecisions: a write of the status neither changes nor removes the conditions of an
// approval, and conditions keep their times.
func TestDecisions(t *testing.T) {
	w := write(t, "certificates.k8s.io", "certificatesigningrequests")
	w.Subresource = "status"
	condition := func(kind, reason, at string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "lastUpdateTime": at, "lastTransitionTime": at}
	}
	status := func(conditions ...any) map[string]any { return map[string]any{"conditions": conditions} }
	old := map[string]any{"status": status(condition("Approved", "Good", "then"), condition("Failed", "Bad", "then"))}
	obj := map[string]any{"status": status(map[string]any{"type": "Failed", "status": "True"}, condition("Approved", "Forged", "now"))}
	w.PrepareUpdate(obj, old)
	failed := condition("Failed", "", "then")
	delete(failed, "reason")
	failed["lastUpdateTime"] = "1970-01-01T00:00:00Z"
	if want := status(failed, condition("Approved", "Good", "then")); !reflect.DeepEqual(obj["status"], want) {
		t.Errorf("%v, want %v", obj["status"], want)
	}
	obj = map[string]any{"status": status(condition("Failed", "Bad", "then"))}
	w.PrepareUpdate(obj, old)
	if want := status(condition("Failed", "Bad", "then")); !reflect.DeepEqual(obj["status"], want) {
		t.Errorf("a decision that is left out: %v", obj["status"])
	}
}

// TestDedupOwnerReferences: only identical references are duplicates; references that share
// just a uid are not.
func TestDedupOwnerReferences(t *testing.T) {
	owner := func(name string) any { return map[string]any{"uid": "u", "name": name} }
	obj := map[string]any{"metadata": map[string]any{"ownerReferences": []any{owner("a"), owner("b"), owner("a")}}}
	if twice := DedupOwnerReferences(obj); !reflect.DeepEqual(twice, []string{"u"}) {
		t.Errorf("reported %v", twice)
	}
	if want := []any{owner("a"), owner("b")}; !reflect.DeepEqual(Metadata(obj)["ownerReferences"], want) {
		t.Errorf("%v, want %v", Metadata(obj)["ownerReferences"], want)
	}
}
