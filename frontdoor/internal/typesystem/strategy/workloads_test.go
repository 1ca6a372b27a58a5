package strategy

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

func write(t *testing.T, group, resource string) Write {
	t.Helper()
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	ty, ok := types.Lookup(group, "v1", resource)
	if !ok {
		t.Fatal("no such type")
	}
	set, err := builtin.Read()
	if err != nil {
		t.Fatal(err)
	}
	return Write{Type: ty, Vocabulary: vocabulary.K8s(), Now: time.Unix(0, 0), Functions: set.Functions}
}

func parse(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDaemonSetTemplates: the template generation starts at one, and updates of clients are
// ignored.
func TestDaemonSetTemplates(t *testing.T) {
	w := write(t, "apps", "daemonsets")
	first := parse(t, `{metadata: {name: d}, spec: {template: {a: b}}}`)
	w.Identify(first)
	w.PrepareCreate(first)
	counted := func(set map[string]any) any {
		return rules.AsObject(Metadata(set)["annotations"])["deprecated.daemonset.template.generation"]
	}
	if got := counted(first); got != "1" {
		t.Errorf("first template is counted as %v", got)
	}
	for text, want := range map[string]string{
		`{metadata: {name: d}, spec: {template: {a: b}, minReadySeconds: 1}}`:                                                       "1",
		`{metadata: {name: d, annotations: {deprecated.daemonset.template.generation: "7"}}, spec: {template: {a: b}}}`:             "1",
		`{metadata: {name: d, annotations: {x: y}}, spec: {template: {a: c}}}`:                                                      "2",
		`{metadata: {name: d, annotations: {deprecated.daemonset.template.generation: "7", x: y}}, spec: {template: {a: c, d: e}}}`: "2",
	} {
		next := parse(t, text)
		if w.Count(next, first); counted(next) != want {
			t.Errorf("%s: counted as %v, want %s", text, counted(next), want)
		}
	}
}

// TestDeploymentGeneration: changes of annotations count, unless they are part of a write
// of the status.
func TestDeploymentGeneration(t *testing.T) {
	w := write(t, "apps", "deployments")
	old := parse(t, `{metadata: {name: d}, spec: {replicas: 1}}`)
	w.Identify(old)
	for text, want := range map[string]int64{
		`{metadata: {name: d, annotations: {a: b}}, spec: {replicas: 1}}`: 2,
		`{metadata: {name: d, labels: {a: b}}, spec: {replicas: 1}}`:      1,
		`{metadata: {name: d}, spec: {replicas: 2}}`:                      2,
	} {
		next := parse(t, text)
		if w.Count(next, old); Metadata(next)["generation"] != want {
			t.Errorf("%s: generation %v, want %d", text, Metadata(next)["generation"], want)
		}
	}
	w.Subresource = "status"
	next := parse(t, `{metadata: {name: d, annotations: {a: b}}, spec: {replicas: 1}}`)
	if w.Count(next, old); Metadata(next)["generation"] != int64(1) {
		t.Errorf("a write of the status is generation %v", Metadata(next)["generation"])
	}
}

// TestOrphans: a deletion of a Job without a propagation policy orphans its pods.
func TestOrphans(t *testing.T) {
	background := metav1.DeletePropagationBackground
	for name, c := range map[string]struct {
		group, resource, finalizers string
		options                     metav1.DeleteOptions
		want                        []any
	}{
		"job":             {"batch", "jobs", `[a]`, metav1.DeleteOptions{}, []any{"a", "orphan"}},
		"requested":       {"batch", "jobs", `[a]`, metav1.DeleteOptions{PropagationPolicy: &background}, []any{"a"}},
		"decided already": {"batch", "jobs", `[foregroundDeletion]`, metav1.DeleteOptions{}, []any{"foregroundDeletion"}},
		"newer":           {"batch", "cronjobs", `[a]`, metav1.DeleteOptions{}, []any{"a"}},
		"older":           {"", "replicationcontrollers", `[]`, metav1.DeleteOptions{}, []any{"orphan"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := parse(t, `{metadata: {name: j, finalizers: `+c.finalizers+`}}`)
			write(t, c.group, c.resource).PrepareDelete(obj, &c.options)
			if got := rules.List(Metadata(obj), "finalizers"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
