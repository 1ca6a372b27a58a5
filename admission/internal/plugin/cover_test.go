package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
)

// A rule of 50 KB that gives 10^12 permissions is refused, not looked through.
func TestLackingIsBounded(t *testing.T) {
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprintf("n%d", i)
	}
	start := time.Now()
	missing := lacking([]policyRule{{Verbs: names, APIGroups: names, Resources: names, ResourceNames: names}}, services.Rules{})
	if len(missing) != 1 || time.Since(start) > 5*time.Second {
		t.Errorf("%d permissions are missing, after %v", len(missing), time.Since(start))
	}
	few := []policyRule{{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods"}}, {Verbs: []string{"get"}, NonResourceURLs: []string{"/healthz"}}}
	if got := combinations(few); got != 3 {
		t.Errorf("%d combinations, want 3", got)
	}
}
