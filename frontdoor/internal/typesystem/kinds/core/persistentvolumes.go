package core

import (
	"path"
	"slices"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// secrets are the fields of volume sources that refer to a Secret and are validated.
// (Kubernetes does not validate nodeStageSecretRef.)
var secrets = [...]string{"secretRef", "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef"}

// namespacedSecrets checks that references to Secrets have a namespace: a PersistentVolume
// has none that could be the default.
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

// volumeModeOfVolume defaults the volume mode to Filesystem. Inline volumes have no default.
func volumeModeOfVolume(m map[string]any, _ vocabulary.Vocabulary) {
	if spec := rules.Object(m, "spec"); spec != nil && spec["volumeMode"] == nil {
		spec["volumeMode"] = "Filesystem"
	}
}

// isInline reports whether a volume spec is part of a VolumeAttachment.
func isInline(at *field.Path) bool { return at != nil && at.Name == "inlineVolumeSpec" }

// inlineVolume checks that an inline volume is a CSI volume without fields that concern
// claims.
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

// sources are the fields of volume sources.
var sources = [...]string{"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
	"gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte",
	"rbd", "scaleIO", "storageos", "vsphereVolume"}

// volumeChanges checks the immutable fields of a volume.
func volumeChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil || isInline(at) {
		return
	}
	for _, name := range sources {
		if !rules.SameField(m, old, name) && !onlyExpands(m, old, name) {
			c.Forbidden(at.Field("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation")
			break
		}
	}
	if !rules.Same(m["volumeMode"], old["volumeMode"]) {
		c.Invalid(&field.Path{Name: "volumeMode"}, m["volumeMode"], "field is immutable")
	}
	if affinity := m["nodeAffinity"]; old["nodeAffinity"] != nil && !rules.Same(affinity, old["nodeAffinity"]) {
		why := "field is immutable"
		if !c.Release.Before(labelsStable) {
			if rules.Same(affinity, relabelled(c.Vocabulary, rules.Object(old, "nodeAffinity"), rules.Object(m, "nodeAffinity"))) {
				return
			}
			why += ", except for updating from beta label to GA"
		}
		c.Invalid(&field.Path{Name: "nodeAffinity"}, affinity, why)
	}
}

// labelsStable is the first release in which the labels of a volume's affinity may be replaced
// by the stable ones.
var labelsStable, _ = release.Of("1.26")

// relabelled returns the stored affinity of a volume with the stable labels that the new one
// has at the same places.
func relabelled(v vocabulary.Vocabulary, old, now map[string]any) map[string]any {
	stable := map[string]string{v.Qualified("failure-domain.beta", "zone"): v.Qualified("topology", "zone"),
		v.Qualified("failure-domain.beta", "region"): v.Qualified("topology", "region"),
		v.Qualified("beta", "os"):                    v.Qualified("", "os"), v.Qualified("beta", "arch"): v.Qualified("", "arch"),
		v.Qualified("beta", "instance-type"): v.Qualified("node", "instance-type")}
	changed := rules.AsObject(tree.Copy(old))
	terms := rules.Objects(rules.Object(now, "required"), "nodeSelectorTerms")
	for i, term := range rules.Objects(rules.Object(changed, "required"), "nodeSelectorTerms") {
		if i >= len(terms) {
			break
		}
		next := rules.Objects(terms[i], "matchExpressions")
		for j, requirement := range rules.Objects(term, "matchExpressions") {
			if name := stable[rules.Text(requirement, "key")]; name != "" && j < len(next) && next[j]["key"] == name {
				requirement["key"] = name
			}
		}
	}
	return changed
}

// attributesClass checks that only CSI volumes have a class of attributes, and that those that
// have one keep having one.
func attributesClass(c *rules.Check, m, old map[string]any, at *field.Path) {
	const name = "volumeAttributesClassName"
	if old[name] != nil && m[name] == nil {
		c.Forbidden(at.Field(name), "update from non-nil value to nil is forbidden")
	}
	if m[name] != nil && m["csi"] == nil {
		c.Required(at.Field("csi"), "has to be specified when using volumeAttributesClassName")
	}
}

// onlyExpands reports whether the only change of a CSI volume is that it gets the secret
// for expansion.
func onlyExpands(m, old map[string]any, name string) bool {
	const secret = "controllerExpandSecretRef"
	before, after := rules.Object(old, name), rules.Object(m, name)
	return name == "csi" && before != nil && before[secret] == nil && rules.Same(rules.Without(after, secret), before)
}

// localVolume checks that a local volume has a node affinity. As in Kubernetes, it is not
// checked if it is a second source.
func localVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	second := slices.ContainsFunc(sources[:], func(name string) bool { return name != "local" && m[name] != nil })
	if m["local"] != nil && m["nodeAffinity"] == nil && !second {
		c.Required(at.Field("nodeAffinity"), "Local volume requires node affinity")
	}
}

// hostRootNotRecycled checks that the root directory of a host is not recycled, which would
// delete its contents.
func hostRootNotRecycled(c *rules.Check, m, _ map[string]any, at *field.Path) {
	host := rules.Object(m, "hostPath")
	if host != nil && path.Clean(rules.Text(host, "path")) == "/" && m["persistentVolumeReclaimPolicy"] == "Recycle" {
		c.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}

// transitionsTimed is the first release that keeps the time of the last change of the phase.
var transitionsTimed, _ = release.Of("1.28")

// timePhase sets the time at which a volume entered its phase, in new volumes and where a
// write of the status changes the phase and does not say when.
func timePhase(w kinds.Write, obj, old map[string]any) {
	const field = "lastPhaseTransitionTime"
	status, before := rules.Object(obj, "status"), rules.Object(old, "status")
	if w.Release.Before(transitionsTimed) || status == nil || old != nil && w.Subresource != "status" {
		return
	}
	switch changed := old == nil || status["phase"] != before["phase"]; {
	case changed && (old == nil || status[field] == nil || status[field] == before[field]):
		status[field] = w.Now.UTC().Format(time.RFC3339)
	case !changed && status[field] == nil && before[field] != nil:
		status[field] = before[field]
	}
}
