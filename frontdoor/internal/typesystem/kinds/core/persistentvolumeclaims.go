package core

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// claimStorage checks that a claim requests storage.
func claimStorage(c *rules.Check, m, _ map[string]any, at *field.Path) {
	where := at.Field("resources").Entry("storage")
	requested, ok := rules.Object(m, "resources", "requests")["storage"]
	if !ok {
		c.Required(where, "")
	} else if q := rules.Quantity(requested); q.Sign() <= 0 {
		c.Invalid(where, requested, "must be greater than zero")
	}
}

// claimChanges checks the immutable fields of a claim: only volumeName may be set later,
// and a bound claim may request more storage.
func claimChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, after := rules.Object(old, "spec"), rules.Object(m, "spec")
	if old == nil || c.Subresource != "" {
		return
	}
	at = at.Field("spec")
	bound := rules.Text(rules.Object(m, "status"), "phase") == "Bound"
	was, is := fixedClaim(before, before, bound), fixedClaim(after, before, bound)
	if classMoved(c, m, old) {
		delete(is, "storageClassName")
	} else {
		sameClassAnnotation(c, m, old)
	}
	if !rules.Same(was, is) {
		c.Forbidden(at, "spec is immutable after creation except resources.requests for bound claims")
	}
	had, requested := rules.Object(before, "resources", "requests")["storage"], rules.Object(after, "resources", "requests")["storage"]
	if less, q := rules.Quantity(had), rules.Quantity(requested); q.Cmp(less) < 0 {
		c.Forbidden(at.Field("resources").Field("requests").Field("storage"), "field can not be less than previous value")
	}
	if !rules.Same(before["volumeMode"], after["volumeMode"]) {
		c.Invalid(&field.Path{Name: "volumeMode"}, after["volumeMode"], "field is immutable")
	}
}

// fixedClaim returns the immutable part of a claim's spec.
func fixedClaim(spec, before map[string]any, bound bool) map[string]any {
	fixed := rules.Without(spec, "resources")
	if rules.Text(before, "volumeName") == "" {
		delete(fixed, "volumeName")
	}
	limits, requests := rules.Object(spec, "resources", "limits"), rules.Object(spec, "resources", "requests")
	if bound && requests != nil {
		requests = rules.Without(requests, "storage")
	}
	fixed["limits"], fixed["requests"] = limits, requests
	return fixed
}

// classMoved reports whether the storage class has moved from the annotation to the field.
func classMoved(c *rules.Check, m, old map[string]any) bool {
	name := classAnnotation(c)
	before, had := rules.Object(old, "metadata", "annotations")[name]
	after, has := rules.Object(m, "metadata", "annotations")[name]
	return had && rules.Object(old, "spec")["storageClassName"] == nil && rules.Object(m, "spec")["storageClassName"] == before &&
		(!has || after == before)
}

func sameClassAnnotation(c *rules.Check, m, old map[string]any) {
	name := classAnnotation(c)
	after := rules.Text(rules.Object(m, "metadata", "annotations"), name)
	if after != rules.Text(rules.Object(old, "metadata", "annotations"), name) {
		c.Invalid((&field.Path{Name: "metadata"}).Field("annotations").Field(name), after, "field is immutable")
	}
}

func classAnnotation(c *rules.Check) string {
	return c.Vocabulary.Qualified("volume.beta", "storage-class")
}

// claimCapacity checks that the reported capacity is not negative.
func claimCapacity(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if c.Subresource != "status" {
		return
	}
	at := (&field.Path{Name: "status"}).Field("capacity")
	for name, value := range rules.Object(m, "status", "capacity") {
		if q := rules.Quantity(value); q.Sign() < 0 {
			c.Invalid(at.Entry(name), value, "must be a valid resource quantity")
		}
	}
}

// dropDataSource drops a data source that release 1.21 does not support: those are claims
// and snapshots. A stored data source is kept.
func dropDataSource(w kinds.Write, obj, old map[string]any) {
	if w.On("AnyVolumeDataSource") || rules.AsObject(rules.AsObject(old)["spec"])["dataSource"] != nil {
		return
	}
	spec := rules.AsObject(obj["spec"])
	source := rules.AsObject(spec["dataSource"])
	switch group := rules.Text(source, "apiGroup"); {
	case source["kind"] == "PersistentVolumeClaim" && group == "":
	case source["kind"] == "VolumeSnapshot" && group == "snapshot."+w.Vocabulary.Group("storage."):
	default:
		delete(spec, "dataSource")
	}
}

// sameDataSources completes one of dataSource and dataSourceRef from the other. Only the
// reference can name another namespace.
func sameDataSources(m map[string]any, _ vocabulary.Vocabulary) {
	spec := rules.Object(m, "spec")
	source, reference := rules.AsObject(spec["dataSource"]), rules.AsObject(spec["dataSourceRef"])
	switch {
	case source == nil && reference != nil && rules.Text(reference, "namespace") == "":
		spec["dataSource"] = tree.Copy(reference)
	case source != nil && reference == nil:
		spec["dataSourceRef"] = tree.Copy(source)
	}
}
