package core

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
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

// soleAccessMode checks that an access mode that allows one pod is the only one.
func soleAccessMode(c *rules.Check, m, _ map[string]any, at *field.Path) {
	modes := rules.Texts(m, "accessModes")
	if slices.Contains(modes, "ReadWriteOncePod") && slices.ContainsFunc(modes, func(mode string) bool { return mode != "ReadWriteOncePod" }) {
		c.Forbidden(at.Field("accessModes"), "may not use ReadWriteOncePod with other access modes")
	}
}

// dataSourceKind checks that a volume is filled from a claim if no group is named.
func dataSourceKind(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range []string{"dataSource", "dataSourceRef"} {
		from := rules.Object(m, name)
		if kind := rules.Text(from, "kind"); from != nil && rules.Text(from, "apiGroup") == "" && kind != "PersistentVolumeClaim" {
			c.Invalid(at.Field(name), kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
		}
	}
}

// dataSources checks what the volume of a claim is filled from.
func dataSources(c *rules.Check, m, _ map[string]any, at *field.Path) {
	source, reference := rules.Object(m, "dataSource"), rules.Object(m, "dataSourceRef")
	for name, from := range map[string]map[string]any{"dataSource": source, "dataSourceRef": reference} {
		at := at.Field(name)
		c.Must(validation.IsDNS1123Subdomain, rules.Text(from, "apiGroup"), at.Field("apiGroup"))
		c.Must(validation.IsDNS1123Label, rules.Text(from, "namespace"), at.Field("namespace"))
	}
	switch {
	case source == nil || reference == nil:
	case rules.Text(reference, "namespace") != "":
		c.Invalid(at, "spec.dataSource", "may not be specified when dataSourceRef.namespace is specified")
	case !rules.Same(source, rules.Without(reference, "namespace")):
		c.Invalid(at, "spec.dataSource", "must match dataSourceRef")
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
	bound, listed := rules.Text(rules.Object(m, "status"), "phase") == "Bound", "resources.requests"
	was, is := fixedClaim(before, before, bound), fixedClaim(after, before, bound)
	if !c.Release.Before(attributesMutable) {
		listed = "resources.requests and volumeAttributesClassName"
		attributes(c, m, old, at.Field("volumeAttributesClassName"))
		if bound {
			delete(was, "volumeAttributesClassName")
			delete(is, "volumeAttributesClassName")
		}
	}
	if classMoved(c, m, old) {
		delete(is, "storageClassName")
	} else {
		sameClassAnnotation(c, m, old)
		if classGiven(c, m, old) {
			delete(is, "storageClassName")
		}
	}
	if !rules.Same(was, is) || is["volumeAttributesClassName"] == "" && was["volumeAttributesClassName"] == nil {
		c.Forbidden(at, "spec is immutable after creation except "+listed+" for bound claims")
	}
	smaller(c, m, old, at.Field("resources").Field("requests").Field("storage"))
	if !rules.Same(before["volumeMode"], after["volumeMode"]) {
		c.Invalid(&field.Path{Name: "volumeMode"}, after["volumeMode"], "field is immutable")
	}
}

// The releases from which the class of attributes of a volume may change, a claim may get the
// default class later, one whose expansion failed may request less again, and dataSourceRef exists.
var (
	attributesMutable, _ = release.Of("1.34")
	classLater, _        = release.Of("1.26")
	recoverable, _       = release.Of("1.32")
	referencesSince, _   = release.Of("1.24")
)

// smaller checks that a claim does not request less storage than before, or than it has.
func smaller(c *rules.Check, m, old map[string]any, at *field.Path) {
	requested := rules.Quantity(rules.Object(m, "spec", "resources", "requests")["storage"])
	before := rules.Quantity(rules.Object(old, "spec", "resources", "requests")["storage"])
	has := rules.Quantity(rules.Object(old, "status", "capacity")["storage"])
	switch {
	case requested.Cmp(before) >= 0:
	case c.Release.Before(recoverable):
		c.Forbidden(at, "field can not be less than previous value")
	case requested.Cmp(has) <= 0:
		c.Forbidden(at, "field can not be less than status.capacity")
	}
}

// attributes checks that a claim whose volume has a class of attributes keeps having one.
func attributes(c *rules.Check, m, old map[string]any, at *field.Path) {
	const name = "volumeAttributesClassName"
	class, given := rules.Object(m, "spec")[name]
	if rules.Object(old, "status")["currentVolumeAttributesClassName"] == nil || rules.Same(class, rules.Object(old, "spec")[name]) {
		return
	}
	switch {
	case !given || class == nil:
		c.Forbidden(at, "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil")
	case class == "":
		c.Forbidden(at, "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil")
	}
}

// classGiven reports whether a claim without a class gets one, as the default class may be made
// later.
func classGiven(c *rules.Check, m, old map[string]any) bool {
	class := rules.Object(m, "spec")["storageClassName"]
	annotated, had := rules.Object(old, "metadata", "annotations")[classAnnotation(c)]
	return !c.Release.Before(classLater) && class != nil && rules.Object(old, "spec")["storageClassName"] == nil && (!had || class == annotated)
}

// fixedClaim returns the immutable part of a claim's spec.
func fixedClaim(spec, before map[string]any, bound bool) map[string]any {
	fixed := rules.Without(spec, "resources")
	completeSources(fixed)
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

// resizes are the states of an expansion.
var resizes = []string{"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"}

// expansion checks what is reported about the expansion of a claim's volume.
func expansion(c *rules.Check, m, _ map[string]any, _ *field.Path) {
	if c.Subresource != "status" {
		return
	}
	status, at := rules.Object(m, "status"), &field.Path{Name: "status"}
	states := at.Field("allocatedResourceStatuses")
	for name, state := range rules.Object(status, states.Name) {
		expandable(c, name, states)
		if text, _ := state.(string); !slices.Contains(resizes, text) {
			c.NotSupported(states, name, resizes...)
		}
	}
	amounts := at.Field("allocatedResources")
	for name, value := range rules.Object(status, amounts.Name) {
		if q := rules.Quantity(value); expandable(c, name, amounts) && q.Sign() < 0 {
			c.Invalid(amounts.Entry(name), q.Value(), "must be a valid resource quantity")
		}
	}
}

// expandable reports whether a resource of a claim can expand, and adds an error if it cannot.
func expandable(c *rules.Check, name string, at *field.Path) bool {
	problems := validation.IsQualifiedName(name)
	for _, problem := range problems {
		c.Invalid(at, name, problem)
	}
	domain, _, qualified := strings.Cut(name, "/")
	own := !qualified || domain == c.Vocabulary.Domain || strings.HasSuffix(domain, "."+c.Vocabulary.Domain)
	if len(problems) == 0 && own && name != "storage" {
		c.NotSupported(at, name, "storage")
		return false
	}
	return len(problems) == 0
}

// dropDataSource drops a data source that is neither a claim nor a snapshot. Those have the
// field dataSourceRef, or in release 1.21 a feature. A stored data source is kept.
func dropDataSource(w kinds.Write, obj, old map[string]any) {
	stored, reference := rules.AsObject(rules.AsObject(old)["spec"]), rules.Object(obj, "spec", "dataSourceRef")
	if rules.Text(reference, "namespace") != "" && stored["dataSourceRef"] == nil && !w.On("CrossNamespaceVolumeDataSource") {
		delete(rules.Object(obj, "spec"), "dataSourceRef")
	}
	if w.Release.Before(referencesSince) && w.On("AnyVolumeDataSource") || stored["dataSource"] != nil {
		return
	}
	spec := rules.AsObject(obj["spec"])
	source := rules.AsObject(spec["dataSource"])
	if spec["dataSourceRef"] != nil && !w.Release.Before(referencesSince) {
		return // as old clients ignore the reference, only they set invalid sources
	}
	switch group := rules.Text(source, "apiGroup"); {
	case source["kind"] == "PersistentVolumeClaim" && group == "":
	case source["kind"] == "VolumeSnapshot" && group == "snapshot."+w.Vocabulary.Group("storage."):
	default:
		delete(spec, "dataSource")
	}
}

// sameDataSources completes one of dataSource and dataSourceRef from the other. Only the
// reference can name another namespace.
func sameDataSources(w kinds.Write, obj, _ map[string]any) {
	if !w.Release.Before(referencesSince) {
		completeSources(rules.Object(obj, "spec"))
	}
}

func completeSources(spec map[string]any) {
	source, reference := rules.Object(spec, "dataSource"), rules.Object(spec, "dataSourceRef")
	switch {
	case source == nil && reference != nil && rules.Text(reference, "namespace") == "":
		spec["dataSource"] = tree.Copy(rules.Without(reference, "namespace"))
	case source != nil && reference == nil:
		spec["dataSourceRef"] = tree.Copy(source)
	}
}
