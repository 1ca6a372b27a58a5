package volumes

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// gone are the volumes that nodes no longer provide, with the releases since when. Those of
// storageos are called storageOS in warnings, as in Kubernetes.
var gone = map[string]string{
	"photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
	"gitRepo":              "deprecated in v1.11, and disabled by default in v1.33+",
	"scaleIO":              "deprecated in v1.16, non-functional in v1.22+",
	"flocker":              "deprecated in v1.22, non-functional in v1.25+",
	"storageos":            "deprecated in v1.22, non-functional in v1.25+",
	"quobyte":              "deprecated in v1.22, non-functional in v1.25+",
	"glusterfs":            "deprecated in v1.25, non-functional in v1.26+",
	"cephfs":               "deprecated in v1.28, non-functional in v1.31+",
	"rbd":                  "deprecated in v1.28, non-functional in v1.31+",
}

// WarnOfSource warns of the source of a volume that nodes no longer provide.
func WarnOfSource(c *rules.Check, volume map[string]any, at *field.Path) {
	for name, why := range gone {
		if volume[name] == nil {
			continue
		}
		if name == "storageos" {
			name = "storageOS"
		}
		c.Warn(at.Field(name).String() + ": " + why)
	}
}

// volumeWarnings warns of settings of persistent volumes that have no effect.
func volumeWarnings(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if c.Subresource != "" {
		return
	}
	spec := rules.Object(m, "spec")
	WarnOfSource(c, rules.Without(spec, "flocker", "quobyte"), at.Field("spec"))
	if rules.Text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
		c.Warn(at.Field("spec").Field("persistentVolumeReclaimPolicy").String() + ": The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	for name, why := range map[string]string{"storage-class": `deprecated since v1.8; use "storageClassName" attribute instead`,
		"mount-options": `deprecated since v1.31; use "mountOptions" attribute instead`} {
		key := c.Vocabulary.Qualified("volume.beta", name)
		if _, given := rules.Object(m, "metadata", "annotations")[key]; given {
			c.Warn(at.Field("metadata").Field("annotations").Entry(key).String() + ": " + why)
		}
	}
}
