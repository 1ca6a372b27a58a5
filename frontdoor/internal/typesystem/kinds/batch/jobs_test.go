package batch

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

func parse(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return m
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
