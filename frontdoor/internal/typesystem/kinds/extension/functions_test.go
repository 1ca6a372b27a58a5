package extension

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestCauses: the problems of a spec are causes that name the fields of the object.
func TestCauses(t *testing.T) {
	spec := map[string]any{
		"mode": "Canary", "sideEffects": "Few",
		"endpoint": map[string]any{"addresses": []any{"a:1", "a:1", "b"}},
		"rules":    []any{map[string]any{"operations": []any{"CREATE"}, "apiGroups": []any{""}, "resources": []any{"pods"}, "apiVersions": []any{"v1"}}},
	}
	completeAdmissionService(spec, vocabulary.Platform())
	c := &rules.Check{}
	admissionService(c, spec, nil, &field.Path{Name: "spec"})
	var got []string
	for _, cause := range c.Causes() {
		got = append(got, cause.Field+" "+cause.Reason)
	}
	want := []string{"spec.canaryPercent " + services.CauseRequired, "spec.endpoint.addresses[1] " + services.CauseDuplicate,
		"spec.endpoint.addresses[2] " + services.CauseInvalid, "spec.sideEffects " + services.CauseNotSupported}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}
