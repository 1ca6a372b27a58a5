package e2e

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/services/vocabulary"
)

// TestWatchesOfDeletedTypesEnd: a watch of custom objects gets their deletion and ends when their
// definition is deleted. A new definition of the same name can be watched.
func TestWatchesOfDeletedTypesEnd(t *testing.T) {
	t.Parallel()
	client := startAllInOne(t, vocabulary.K8s()).Client(t)
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	p := paints{client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "paints"}).Namespace(newNamespace(t, client)), t}
	for range 2 {
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(paintDefinition), &definition.Object); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the definition is created", func() bool {
			_, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
			return err == nil
		})
		eventually(t, "the type is served", func() bool { _, err := p.List(t.Context(), metav1.ListOptions{}); return err == nil })
		_, now := p.names("", 0)
		watching, err := p.Watch(t.Context(), metav1.ListOptions{ResourceVersion: now})
		if err != nil {
			t.Fatal(err)
		}
		p.create("a", "red")
		if err := definitions.Delete(t.Context(), "paints.example.com", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var seen []watch.EventType
		for end := time.After(30 * time.Second); ; {
			select {
			case event, ok := <-watching.ResultChan():
				if ok {
					seen = append(seen, event.Type)
					continue
				}
			case <-end:
				t.Fatalf("the watch does not end: %v", seen)
			}
			break
		}
		if len(seen) != 2 || seen[0] != watch.Added || seen[1] != watch.Deleted {
			t.Errorf("events %v", seen)
		}
	}
}
