package volumes

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// ownClaims checks the names of the claims that are made for a pod, and that no volume refers to
// one of them.
func ownClaims(c *rules.Check, m, _ map[string]any, at *field.Path) {
	pod, volumes := rules.Text(rules.Object(m, "metadata"), "name"), rules.Objects(rules.Object(m, "spec"), "volumes")
	if pod == "" {
		return
	}
	made := map[string]bool{}
	where := func(i int) *field.Path { return at.Field("spec").Field("volumes").Item(i) }
	for i, volume := range volumes {
		name := rules.Text(volume, "name")
		if volume["ephemeral"] == nil || name == "" {
			continue
		}
		claim := pod + "-" + name
		made[claim] = true
		for _, problem := range validation.IsDNS1123Subdomain(claim) {
			c.Invalid(where(i).Field("name"), name, fmt.Sprintf("PVC name %q: %s", claim, problem))
		}
	}
	for i, volume := range volumes {
		if claim := rules.Text(rules.Object(volume, "persistentVolumeClaim"), "claimName"); made[claim] {
			c.Invalid(where(i).Field("persistentVolumeClaim").Field("claimName"), claim, "must not reference a PVC that gets created for an ephemeral volume")
		}
	}
}

// longestPortal limits the names of a volume and of its iSCSI portal together, in bytes.
const longestPortal = 64

// initiatorLength checks the volumes with an iSCSI initiator of their own.
func initiatorLength(c *rules.Check, m, _ map[string]any, at *field.Path) {
	disk, name := rules.Object(m, "iscsi"), rules.Text(m, "name")
	if disk["initiatorName"] != nil && len(name+":"+rules.Text(disk, "targetPortal")) > longestPortal {
		c.Invalid(at.Field("name"), name, fmt.Sprintf(
			"Total length of <volume name>:<iscsi.targetPortal> must be under %d characters if iscsi.initiatorName is specified.", longestPortal))
	}
}
