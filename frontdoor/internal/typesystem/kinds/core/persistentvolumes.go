package core

import (
	"path"
	"slices"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// secrets are the fields of sources that name a secret. (nodeStageSecretRef has never
// been looked at.)
var secrets = [...]string{"secretRef", "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef"}

// namespacedSecrets: a volume is in no namespace, so that its secrets name theirs.
func namespacedSecrets(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range secrets {
		secret, given := m[name].(map[string]any)
		for _, part := range [...]string{"name", "namespace"} {
			if given && rules.Text(secret, part) == "" {
				c.Required(at.Field(name).Field(part), "")
			}
		}
	}
}

// volumeModeOfVolume: a volume has files on it, unless it says otherwise. One that is
// described where it is attached does not say.
func volumeModeOfVolume(m map[string]any, _ vocabulary.Vocabulary) {
	if spec := rules.Object(m, "spec"); spec != nil && spec["volumeMode"] == nil {
		spec["volumeMode"] = "Filesystem"
	}
}

// isInline reports whether a volume is described where it is attached.
func isInline(at *field.Path) bool { return at != nil && at.Name == "inlineVolumeSpec" }

// inlineVolume: a volume that is only attached is one of a storage driver, and has
// nothing that is about claims.
func inlineVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if !isInline(at) {
		return
	}
	for _, name := range [...]string{"claimRef", "capacity", "nodeAffinity", "storageClassName"} {
		if !rules.Empty(m[name]) {
			c.Forbidden(at.Field(name), "may not be specified in the context of inline volumes")
		}
	}
	if m["csi"] == nil {
		c.Required(at.Field("csi"), "has to be specified in the context of inline volumes")
	}
	if policy := m["persistentVolumeReclaimPolicy"]; !rules.Empty(policy) && policy != "Retain" {
		c.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may only be Retain in the context of inline volumes")
	}
	if mode := m["volumeMode"]; mode != nil && mode != "Filesystem" {
		c.Forbidden(at.Field("volumeMode"), "may not specify volumeMode other than Filesystem in the context of inline volumes")
	}
}

func capacityStorage(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if isInline(at) {
		return
	}
	capacity, at := rules.Object(m, "capacity"), at.Field("capacity")
	if len(capacity) == 0 {
		c.Required(at, "")
	}
	if _, ok := capacity["storage"]; !ok || len(capacity) != 1 {
		c.NotSupported(at, m["capacity"], "storage")
	}
	for name, value := range capacity {
		if q := rules.Quantity(value); q.Sign() <= 0 {
			c.Invalid(at.Entry(name), value, "must be greater than zero")
		}
	}
}

// sources are the fields of a volume that say where its data are.
var sources = [...]string{"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
	"gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte",
	"rbd", "scaleIO", "storageos", "vsphereVolume"}

// volumeChanges: a volume stays where its data are.
func volumeChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil || isInline(at) {
		return
	}
	for _, name := range sources {
		if !rules.Same(m[name], old[name]) && !onlyExpands(m, old, name) {
			c.Forbidden(at.Field("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")
			break
		}
	}
	if !rules.Same(m["volumeMode"], old["volumeMode"]) {
		c.Invalid(&field.Path{Name: "volumeMode"}, m["volumeMode"], "field is immutable")
	}
	if old["nodeAffinity"] != nil && !rules.Same(m["nodeAffinity"], old["nodeAffinity"]) {
		c.Invalid(&field.Path{Name: "nodeAffinity"}, m["nodeAffinity"], "field is immutable")
	}
}

// onlyExpands reports whether a driver's volume gets the secret with which it can grow,
// and else stays as it is.
func onlyExpands(m, old map[string]any, name string) bool {
	const secret = "controllerExpandSecretRef"
	before, after := rules.Object(old, name), rules.Object(m, name)
	return name == "csi" && before != nil && before[secret] == nil && rules.Same(rules.Without(after, secret), before)
}

// localVolume: a local disk is reached from its node only. It is not looked at where it
// is a second source.
func localVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	second := slices.ContainsFunc(sources[:], func(name string) bool { return name != "local" && m[name] != nil })
	if m["local"] != nil && m["nodeAffinity"] == nil && !second {
		c.Required(at.Field("nodeAffinity"), "Local volume requires node affinity")
	}
}

// hostRootNotRecycled: the root directory of a machine is not wiped.
func hostRootNotRecycled(c *rules.Check, m, _ map[string]any, at *field.Path) {
	host := rules.Object(m, "hostPath")
	if host != nil && path.Clean(rules.Text(host, "path")) == "/" && m["persistentVolumeReclaimPolicy"] == "Recycle" {
		c.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}
