package pods

import (
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

func spec(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"spec": m}
}

// TestGrace: only a pod on a node has a grace period, and it is never negative.
func TestGrace(t *testing.T) {
	for name, c := range map[string]struct {
		spec      string
		requested *int64
		want      int64
	}{
		"no node":          {`{terminationGracePeriodSeconds: 5}`, nil, 0},
		"its own":          {`{nodeName: here, terminationGracePeriodSeconds: 5}`, nil, 5},
		"less than none":   {`{nodeName: here, terminationGracePeriodSeconds: -5}`, nil, 1},
		"requested":        {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(7)), 7},
		"at once":          {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(0)), 0},
		"negative request": {`{nodeName: here, terminationGracePeriodSeconds: 5}`, new(int64(-1)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := podGracePeriod(spec(t, c.spec), c.requested); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestGates: a new pod with gates says so, and one without does not.
func TestGates(t *testing.T) {
	pod := spec(t, `{schedulingGates: [{name: a}]}`)
	showGates(kinds.Write{Now: time.Unix(0, 0)}, pod, nil)
	conditions := pod["status"].(map[string]any)["conditions"].([]any)
	if c := conditions[0].(map[string]any); c["reason"] != "SchedulingGated" || c["status"] != "False" || c["lastTransitionTime"] != "1970-01-01T00:00:00Z" {
		t.Errorf("%v", c)
	}
	pod = spec(t, `{}`)
	if showGates(kinds.Write{}, pod, nil); pod["status"] != nil {
		t.Errorf("%v", pod)
	}
}
