package apps

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// statefulSetName checks the name of a new set, which its pods have in a label.
func statefulSetName(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil {
		c.Must(validation.IsDNS1123Label, rules.Text(rules.Object(m, "metadata"), "name"), at.Field("metadata").Field("name"))
	}
}

// claimVolumes checks that pods can have the volumes of a set's claims: they are named after
// their templates, and precede those of the template of the pods, whose paths they have.
func claimVolumes(c *rules.Check, m, _ map[string]any, at *field.Path) {
	at = at.Field("template").Field("spec").Field("volumes")
	seen := map[string]bool{}
	for i, template := range rules.Objects(m, "volumeClaimTemplates") {
		name := rules.Text(rules.Object(template, "metadata"), "name")
		if seen[name] {
			continue // one volume for both
		}
		seen[name] = true
		if name == "" {
			c.Required(at.Item(i).Field("name"), "")
			c.Required(at.Item(i).Field("persistentVolumeClaim").Field("claimName"), "")
		}
		c.Must(validation.IsDNS1123Label, name, at.Item(i).Field("name"))
	}
}
