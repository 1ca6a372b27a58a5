package batch

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

func parse(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLabelsOfJob: labels that a Job has from its template are completed with those, and its own
// are kept.
func TestLabelsOfJob(t *testing.T) {
	for name, c := range map[string]struct{ metadata, want string }{
		"none":  {`{name: j, uid: u}`, `{a: b, controller-uid: u, job-name: j}`},
		"own":   {`{name: j, uid: u, labels: {c: d}}`, `{c: d}`},
		"equal": {`{name: j, uid: u, labels: {a: b}}`, `{a: b}`},
	} {
		job := parse(t, `{metadata: `+c.metadata+`, spec: {template: {metadata: {labels: {a: b}}}}}`)
		labelsOfJob(job, vocabulary.K8s())
		createJob(kinds.Write{}, job, nil)
		metadata := job["metadata"].(map[string]any)
		if want := parse(t, c.want); !reflect.DeepEqual(metadata["labels"], want) {
			t.Errorf("%s: got %v, want %v", name, metadata["labels"], want)
		}
		metadata["labels"].(map[string]any)["x"] = "y"
		if template := rules.Object(job, "spec", "template", "metadata", "labels"); template["x"] != nil {
			t.Errorf("%s: the template has the same labels", name)
		}
	}
}

// TestCreateJob: a Job gets generated labels and selector, but existing ones are kept.
func TestCreateJob(t *testing.T) {
	const own = `{matchLabels: {controller-uid: u}}`
	for name, c := range map[string]struct{ spec, want string }{
		"plain":    {`{}`, `{selector: ` + own + `, template: {metadata: {labels: {controller-uid: u, job-name: j}}}}`},
		"labelled": {`{template: {metadata: {labels: {job-name: x, a: b}}}}`, `{selector: ` + own + `, template: {metadata: {labels: {controller-uid: u, job-name: x, a: b}}}}`},
		"selects":  {`{selector: {matchLabels: {a: b}}}`, `{selector: {matchLabels: {a: b, controller-uid: u}}, template: {metadata: {labels: {controller-uid: u, job-name: j}}}}`},
		"manual":   {`{manualSelector: true}`, `{manualSelector: true}`},
	} {
		t.Run(name, func(t *testing.T) {
			job := parse(t, `{metadata: {name: j, uid: u}, spec: `+c.spec+`}`)
			createJob(kinds.Write{}, job, nil)
			if want := parse(t, c.want); !reflect.DeepEqual(job["spec"], want) {
				t.Errorf("got %v, want %v", job["spec"], want)
			}
		})
	}
}
