package volumes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// podToken: a token is that of a service account.
func podToken(c *rules.Check, m, _ map[string]any, at *field.Path) {
	spec := rules.Object(m, "spec")
	if rules.Text(spec, "serviceAccountName") != "" {
		return
	}
	for i, volume := range rules.Objects(spec, "volumes") {
		sources := at.Field("spec").Field("volumes").Item(i).Field("projected").Field("sources")
		for j, source := range rules.Objects(rules.Object(volume, "projected"), "sources") {
			if source["serviceAccountToken"] != nil {
				c.Forbidden(sources.Item(j).Field("serviceAccountToken"), "must not be specified when serviceAccountName is not set")
			}
		}
	}
}
