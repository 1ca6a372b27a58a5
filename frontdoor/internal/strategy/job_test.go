package strategy

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSelectByUID: a job without a selector of its own selects the pods that it makes.
func TestSelectByUID(t *testing.T) {
	for name, c := range map[string]struct{ job, want string }{
		"generated":  {`{}`, `{selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u, job-name: j}}}}`},
		"label kept": {`{template: {metadata: {labels: {job-name: x}}}}`, `{selector: {matchLabels: {controller-uid: u}}, template: {metadata: {labels: {controller-uid: u, job-name: x}}}}`},
		"given":      {`{selector: {matchLabels: {a: b}}}`, `{selector: {matchLabels: {a: b}}}`},
		"manual":     {`{manualSelector: true}`, `{manualSelector: true}`},
	} {
		t.Run(name, func(t *testing.T) {
			parse := func(text string) (m map[string]any) {
				if err := yaml.Unmarshal([]byte(text), &m); err != nil {
					t.Fatal(err)
				}
				return m
			}
			job := map[string]any{"metadata": map[string]any{"name": "j", "uid": "u"}, "spec": parse(c.job)}
			selectByUID(job)
			if want := parse(c.want); !reflect.DeepEqual(job["spec"], want) {
				t.Errorf("got %v, want %v", job["spec"], want)
			}
		})
	}
}
