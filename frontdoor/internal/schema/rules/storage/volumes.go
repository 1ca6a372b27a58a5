package storage

import (
	"path"

	"github.com/portico-platform/portico/frontdoor/internal/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/schema/rules"
)

// claimStorage: a claim says how much it needs.
func claimStorage(c *rules.Check, m, _ map[string]any, at *field.Path) {
	where := at.Field("resources").Field("requests").Entry("storage")
	asked, ok := rules.Object(m, "resources", "requests")["storage"]
	if !ok {
		c.Required(where, "")
	} else if q := rules.Quantity(asked); q.Sign() <= 0 {
		c.Invalid(where, asked, "must be greater than zero")
	}
}

// claimChanges: a claim stays as it was made, but is bound to a volume, and when it
// is bound may ask for more.
func claimChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, after := rules.Object(old, "spec"), rules.Object(m, "spec")
	if before == nil || after == nil {
		return
	}
	at = at.Field("spec")
	bound := rules.Text(rules.Object(old, "status"), "phase") == "Bound"
	if !rules.Same(fixedClaim(before, before, bound), fixedClaim(after, before, bound)) {
		c.Forbidden(at, "spec is immutable after creation except resources.requests for bound claims")
	}
	had, asked := rules.Object(before, "resources", "requests")["storage"], rules.Object(after, "resources", "requests")["storage"]
	if less, q := rules.Quantity(had), rules.Quantity(asked); had != nil && asked != nil && q.Cmp(less) < 0 {
		c.Forbidden(at.Field("resources").Field("requests").Entry("storage"), "field can not be less than previous value")
	}
}

// fixedClaim returns what may not change of a claim's spec.
func fixedClaim(spec, before map[string]any, bound bool) map[string]any {
	fixed := rules.Without(spec, "resources")
	if rules.Text(before, "volumeName") == "" {
		delete(fixed, "volumeName")
	}
	resources := rules.Object(spec, "resources")
	fixed["limits"] = resources["limits"]
	if !bound {
		fixed["requests"] = resources["requests"]
	}
	return fixed
}

func capacityStorage(c *rules.Check, m, _ map[string]any, at *field.Path) {
	capacity, at := rules.Object(m, "capacity"), at.Field("capacity")
	if capacity == nil {
		return // required, and reported as such
	}
	if value, ok := capacity["storage"]; !ok || len(capacity) != 1 {
		c.NotSupported(at, capacity, "storage")
	} else if q := rules.Quantity(value); q.Sign() <= 0 {
		c.Invalid(at.Entry("storage"), value, "must be greater than zero")
	}
}

// sources are the fields of a volume that say where its data are.
var sources = [...]string{"awsElasticBlockStore", "azureDisk", "azureFile", "cephfs", "cinder", "csi", "fc", "flexVolume", "flocker",
	"gcePersistentDisk", "glusterfs", "hostPath", "iscsi", "local", "nfs", "photonPersistentDisk", "portworxVolume", "quobyte",
	"rbd", "scaleIO", "storageos", "vsphereVolume"}

// volumeChanges: a volume stays where its data are.
func volumeChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil {
		return
	}
	for _, name := range sources {
		if !rules.Same(m[name], old[name]) {
			c.Forbidden(at.Field("persistentvolumesource"), "is immutable after creation")
			break
		}
	}
	if !rules.Empty(old["nodeAffinity"]) && !rules.Same(m["nodeAffinity"], old["nodeAffinity"]) {
		c.Invalid(at.Field("nodeAffinity"), m["nodeAffinity"], "field is immutable")
	}
}

// localVolume: a local disk is reached from its node only.
func localVolume(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["local"] != nil && m["nodeAffinity"] == nil {
		c.Required(at.Field("nodeAffinity"), "Local volume requires node affinity")
	}
}

// hostRoot: the root directory of a machine is not wiped.
func hostRoot(c *rules.Check, m, _ map[string]any, at *field.Path) {
	host := rules.Object(m, "hostPath")
	if host != nil && path.Clean(rules.Text(host, "path")) == "/" && m["persistentVolumeReclaimPolicy"] == "Recycle" {
		c.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
}

// Bounds of the parameters of a class.
const (
	maxParameters      = 512
	maxParameterLength = 256 << 10
)

func parameterSize(c *rules.Check, m, _ map[string]any, at *field.Path) {
	parameters, size := rules.Object(m, "parameters"), 0
	for key, value := range parameters {
		s, _ := value.(string)
		if size += len(key) + len(s); key == "" {
			c.Invalid(at.Field("parameters"), key, "field can not be empty")
		}
	}
	if len(parameters) > maxParameters {
		c.TooMany(at.Field("parameters"), len(parameters), maxParameters)
	}
	if size > maxParameterLength {
		c.TooLong(at.Field("parameters"), maxParameterLength)
	}
}
