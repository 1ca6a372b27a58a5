package tools

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	portico "github.com/portico-platform/portico/testing"
)

// TestHistory: the changes of an object with their managers, also after it was deleted.
func TestHistory(t *testing.T) {
	t.Parallel()
	_, k, c := cluster(t)
	maps := k.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}, Data: map[string]string{"a": "1", "dotted.key": "1"}}
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{FieldManager: "creator"}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), "seen", types.MergePatchType, []byte(`{"data":{"a":"2","b":"new","dotted.key":null}}`), metav1.PatchOptions{FieldManager: "changer"}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Revisions []revision }
	c.json(&got, "history", "cm", "seen")
	if len(got.Revisions) != 2 || got.Revisions[0].Type != "ADDED" || got.Revisions[0].Managers[0] != "creator (Update)" || got.Revisions[0].First {
		t.Fatalf("%+v", got)
	}
	second := got.Revisions[1]
	want := []change{{"data.a", "1", "2"}, {"data.b", nil, "new"}, {"data[dotted.key]", "1", nil}}
	if second.Type != "MODIFIED" || !strings.Contains(strings.Join(second.Managers, " "), "changer (Update)") || len(second.Changes) != 3 {
		t.Fatalf("%+v", second)
	}
	for i, c := range second.Changes {
		if c != want[i] {
			t.Errorf("got %v, want %v", c, want[i])
		}
	}
	if r := c.run("history", "configmaps", "seen"); r.code != 0 || !strings.Contains(r.out, `data.a: "1" -> "2"`) || !strings.Contains(r.out, "changer (Update)") {
		t.Errorf("%+v", r)
	}
	if err := maps.Delete(t.Context(), "seen", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.json(&got, "history", "configmaps", "seen")
	if n := len(got.Revisions); n != 3 || got.Revisions[2].Type != "DELETED" {
		t.Errorf("%+v", got)
	}
	if r := c.run("history", "configmaps", "never"); r.code != 1 || !strings.Contains(r.stderr, "does not exist") {
		t.Errorf("%+v", r)
	}
}

// TestHistoryThatIsNotHeld: older changes have been compacted.
func TestHistoryThatIsNotHeld(t *testing.T) {
	t.Parallel()
	_, k, c := cluster(t, portico.WithArgs("--watch-history=1s", "--etcd-compaction-interval=1s"))
	maps := k.CoreV1().ConfigMaps("default")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}, Data: map[string]string{"n": "0"}}
	if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for n, deadline := 1, time.Now().Add(30*time.Second); ; n++ {
		if time.Now().After(deadline) {
			t.Fatal("everything is held")
		}
		object.Data["n"] = strconv.Itoa(n)
		if _, err := maps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var got struct{ Revisions []revision }
		c.json(&got, "history", "configmaps", "seen")
		last := got.Revisions[len(got.Revisions)-1]
		if len(last.Changes) > 0 && last.Changes[len(last.Changes)-1].To != object.Data["n"] {
			t.Fatalf("the last change of %+v is not %d", got, n)
		}
		if got.Revisions[0].First {
			return
		}
	}
}
