package crd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

// TestStoredVersions: a version is added to status.storedVersions when it becomes the storage version, only a
// client removes one, by an update of the status, never the storage version, and one that is there must stay in
// spec.versions.
func TestStoredVersions(t *testing.T) {
	version := func(name string, storage bool) any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	}
	for _, steps := range [][]struct {
		spec         string // names of versions, the storage version first; empty for an update of the status
		status, want string // storedVersions that the client sends, and that are stored
		refused      string
	}{
		{{"v1", "", "v1", ""}, {"v2 v1", "", "v1 v2", ""}, {"v2", "", "", "status.storedVersions[0]: Invalid value: \"v1\": m"},
			{"v1 v2", "", "v1 v2", ""}, {"v3 v1 v2", "", "v1 v2 v3", ""}},
		{{"v1", "v7 v1", "v7 v1", "status.storedVersions[0]: Invalid value: \"v7\""}},
		{{"v1", "", "v1", ""}, {"v2 v1", "", "v1 v2", ""}, {"", "v2", "v2", ""}, {"v2", "", "v2", ""}, {"v3 v2", "", "v2 v3", ""}, {"", "v2", "v2 v3", ""},
			{"", "v3 v2", "v3 v2", ""}, {"", "v3 v3", "v3 v3", ""}, {"v3", "", "v3 v3", ""}, {"v4", "", "", "status.storedVersions[1]: Invalid value: \"v3\""}},
		{{"v1", "", "v1", ""}, {"", "v1 v9", "v1 v9", ""}, {"v1 v2", "", "", "status.storedVersions[1]: Invalid value: \"v9\": m"},
			{"v1 v9", "", "v1 v9", ""}, {"", "v1", "v1", ""}, {"v1", "", "v1", ""}},
	} {
		eachVocabulary(t, func(t *testing.T, w world) {
			var old map[string]any
			for i, step := range steps {
				next := tree.Copy(old).(map[string]any)
				if old == nil {
					next = w.widgets(t, `{type: object}`)
					next["status"] = map[string]any{}
				}
				if step.spec != "" {
					var versions []any
					for j, name := range strings.Fields(step.spec) {
						versions = append(versions, version(name, j == 0))
					}
					tree.Child(next, "spec")["versions"] = versions
				}
				if step.status != "" {
					tree.Child(next, "status")["storedVersions"] = tree.ListOf(strings.Fields(step.status))
				}
				w.claims(now).Establish(next, old)
				var err error
				if step.spec != "" { // the status of a definition has no rules of its own
					err = w.rules().Check(next, old)
				}
				if step.refused != "" {
					if err == nil || !strings.Contains(err.Error(), step.refused) {
						t.Errorf("%v: step %d: %v, want %s", steps, i, err, step.refused)
					}
					continue
				}
				if got := strings.Join(tree.Texts(tree.Child(next, "status"), "storedVersions"), " "); err != nil || got != step.want {
					t.Errorf("%v: step %d: %s, want %s: %v", fmt.Sprint(steps), i, got, step.want, err)
				}
				old = next
			}
		})
	}
}
