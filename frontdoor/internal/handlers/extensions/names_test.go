package extensions

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNamesOfResources: discovery names no resource of an extension whose paths would lead elsewhere,
// and no name that is not one. Names that extensions use are kept.
func TestNamesOfResources(t *testing.T) {
	good := []string{"widgets", "widgets/status", "pods/http_requests", "namespaces/kube_pod:rate5m", "jobs.batch/queue-length", "services/:sum"}
	list := metav1.APIResourceList{GroupVersion: "ext.example.com/v1"}
	for _, name := range good {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: "MetricValueList", Verbs: []string{"get", "*", "<b>"},
			ShortNames: []string{"w", "..", "a b"}, Categories: []string{"all", "\x1b[31m"}, SingularName: "a/b", StorageVersionHash: "a\nb"})
	}
	for _, name := range []string{"", ".", "..", "../pods", "widgets/..", "widgets/", "/widgets", "a/b/c", "a#b", "a?b", "a%2fb", "a b", "a\\b", "<img src=x>", "\x1b[31mred", "\u202eabc", "é",
		strings.Repeat("a", 300)} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: "Evil", Verbs: []string{"list", "delete"}})
	}
	for _, kind := range []string{"", "..", "A/B", "A b", strings.Repeat("A", 100)} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "evils", Kind: kind})
	}
	list.APIResources = append(list.APIResources, metav1.APIResource{Name: "evils", Kind: "Evil", Group: "../x"}, metav1.APIResource{Name: "evils", Kind: "Evil", Version: ".."})
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	d := newDocumented(t)
	d.document.Store("/apis/ext.example.com/v1", string(text))
	d.read()
	x := (*d.bench.handlers.table.Load())[[2]string{"ext.example.com", "v1"}]
	var got []string
	for _, r := range x.resources {
		got = append(got, r.Name)
		if !slices.Equal(r.Verbs, []string{"get", "*"}) || !slices.Equal(r.ShortNames, []string{"w"}) || !slices.Equal(r.Categories, []string{"all"}) || r.SingularName != "" || r.StorageVersionHash != "" {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	if !slices.Equal(got, good) {
		t.Errorf("got %q", got)
	}
	if v := d.version(); strings.Contains(v.String(), "..") {
		t.Errorf("discovery has %v", v)
	}
}
