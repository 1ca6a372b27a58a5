package crd

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/structural"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Conditions of a definition.
const (
	namesAccepted = "NamesAccepted"
	established   = "Established"
	terminating   = "Terminating"
	unstructured  = "NonStructuralSchema"
)

// Claims decides which names a definition is given.
type Claims struct {
	// Others are all definitions; those of the same group keep the names that they were
	// given.
	Others []Definition
	// Types has the built-in types, whose names are never given.
	Types      *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	Now        time.Time
}

// Establish sets the status of a definition that is about to be stored, in any version:
// accepted names, stored versions and conditions. It takes earlier decisions of the service
// from the old definition (nil for a create), never from the object: a client cannot make a
// definition accepted, established or terminating. A definition with accepted names is
// established at once, because each front door serves it as soon as it has received it. One
// that requests names of built-in types is never established, and no longer established if
// it was. While a definition is being deleted, nothing else is decided.
func (c Claims) Establish(object, old map[string]any) {
	s := tree.Child(asV1(object, c.Vocabulary), "spec")
	status := ownStatus(object)
	c.restore(status, tree.Child(old, "status"))
	reserved := builtIn(s, c.Types)
	meta := tree.Child(object, "metadata")
	if meta["deletionTimestamp"] != nil && len(reserved) == 0 {
		return
	}
	had := namesOf(tree.Child(status, "acceptedNames"))
	if len(reserved) > 0 {
		had = Names{}
	}
	accepted, conflicts := accept(namesOf(tree.Child(s, "names")).completed(), had, c.taken(tree.Text(meta, "name"), s, reserved))
	status["acceptedNames"] = accepted.object()
	status["storedVersions"] = storedVersions(s, status)
	stamp := c.Now.UTC().Format(time.RFC3339)
	setApproval(object, status, c.Vocabulary, stamp)
	setStructure(s, status, c.Vocabulary, stamp)
	if len(conflicts) > 0 {
		last := conflicts[len(conflicts)-1]
		conditions.Set(status, conditions.New(namesAccepted, "False", last.reason, last.message), stamp)
		if len(reserved) > 0 || !conditions.True(status, established) {
			conditions.Set(status, conditions.New(established, "False", "NotAccepted", "not all names are accepted"), stamp)
		}
		return
	}
	conditions.Set(status, conditions.New(namesAccepted, "True", "NoConflicts", "no conflicts found"), stamp)
	if !conditions.True(status, established) {
		conditions.Set(status, conditions.New(established, "True", "InitialNamesAccepted", "the initial names have been accepted"), stamp)
	}
}

// restore reverts a client's changes to the parts of a status that only the service sets:
// the accepted names and the service's own conditions. Conditions of other types and
// storedVersions are the client's.
func (c Claims) restore(status, old map[string]any) {
	conditions.Restore(status, old, namesAccepted, established, terminating, unstructured, c.Vocabulary.ApprovalCondition)
	delete(status, "acceptedNames")
	if names := old["acceptedNames"]; names != nil {
		status["acceptedNames"] = names
	}
}

// ownStatus replaces the object's status by a shallow copy, which can be modified.
func ownStatus(object map[string]any) map[string]any {
	status := maps.Clone(tree.Child(object, "status"))
	if status == nil {
		status = map[string]any{}
	}
	object["status"] = status
	return status
}

// setStructure sets or removes the condition NonStructuralSchema. Only old definitions can
// have schemas that are not structural.
func setStructure(spec, status map[string]any, v vocabulary.Vocabulary, stamp string) {
	violations := structureOf(spec, v)
	if len(violations) == 0 {
		conditions.Drop(status, unstructured)
		return
	}
	conditions.Set(status, conditions.New(unstructured, "True", "Violations", joinMessages(violations)), stamp)
}

// structureOf returns the violations of structural schemas in a spec of version v1.
func structureOf(spec map[string]any, v vocabulary.Vocabulary) (violations []string) {
	c := structural.Schemas{Extension: v.Extension}
	if spec["preserveUnknownFields"] == true {
		c.Invalid(at("preserveUnknownFields"), true, "must be false")
	}
	for i, version := range children(spec, "versions") {
		if raw := tree.Child(tree.Child(version, "schema"), "openAPIV3Schema"); raw != nil {
			c.Check(raw, at("versions").Item(i).Field("schema").Field("openAPIV3Schema"))
		}
	}
	for _, cause := range c.Causes() {
		violations = append(violations, cause.Field+": "+cause.Message)
	}
	return violations
}

// joinMessages joins messages as one text.
func joinMessages(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return "[" + strings.Join(faults, ", ") + "]"
}

// storedVersions returns the versions in which objects may be stored: the earlier ones, and
// the current storage version.
func storedVersions(spec, status map[string]any) []any {
	kept := tree.Texts(status, "storedVersions")
	for _, version := range children(spec, "versions") {
		if name := tree.Text(version, "name"); version["storage"] == true && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return tree.ListOf(kept)
}
