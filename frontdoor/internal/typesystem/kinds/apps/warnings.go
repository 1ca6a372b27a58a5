package apps

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// namesOfPods warns of names of new objects that begin the names of their pods, and are no
// hostnames.
func namesOfPods(c *rules.Check, m, old map[string]any, _ *field.Path) {
	if problems := validation.IsDNS1123Label(rules.Text(rules.Object(m, "metadata"), "name")); old == nil && len(problems) > 0 {
		c.Warn(fmt.Sprintf("metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: %v", problems))
	}
}

// keptRevisions warns of StatefulSets whose revisions are never deleted.
func keptRevisions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Number(rules.Object(m, "spec"), "revisionHistoryLimit") < 0 {
		c.Warn(at.Field("spec").Field("revisionHistoryLimit").String() + ": a negative value retains all historical revisions; a value >= 0 is recommended")
	}
}
