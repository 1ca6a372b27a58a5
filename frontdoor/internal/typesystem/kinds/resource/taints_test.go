package resource

import (
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestTaintTimes: a taint has the time at which it was added, or at which its effect changed.
func TestTaintTimes(t *testing.T) {
	rule := func(effect, at string) (map[string]any, map[string]any) {
		taint := map[string]any{"effect": effect, "timeAdded": at}
		return map[string]any{"spec": map[string]any{"taint": taint}}, taint
	}
	old, _ := rule("NoSchedule", "then")
	for name, c := range map[string]struct{ effect, at, want string }{
		"same":    {"NoSchedule", "then", "then"},
		"changed": {"NoExecute", "then", "1970-01-01T00:00:00Z"},
		"given":   {"NoExecute", "now", "now"},
	} {
		object, taint := rule(c.effect, c.at)
		if retimeTaint(kinds.Write{Now: time.Unix(0, 0)}, object, old); taint["timeAdded"] != c.want {
			t.Errorf("%s: %v, want %s", name, taint["timeAdded"], c.want)
		}
	}
	added := map[string]any{}
	timeTaint(added, vocabulary.K8s())
	if at, err := time.Parse(time.RFC3339, added["timeAdded"].(string)); err != nil || time.Since(at) > time.Hour {
		t.Errorf("%v: %v", added, err)
	}
}
