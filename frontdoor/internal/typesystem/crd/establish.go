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

// Claims is what decides about the names that a definition asks for.
type Claims struct {
	// Others are all definitions there are; those of its group keep the names that
	// they were given first.
	Others []Definition
	// Types has the built-in types, which keep their names in any case.
	Types      *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	Now        time.Time
}

// Establish sets the status of a definition that is about to be stored, in any
// version: the names that it is given, the versions in which objects may be kept,
// and its conditions. What the service decided before is taken from the old
// definition, nil at a create, and never from the object: nobody else's word makes
// a definition accepted, established or terminating. A definition whose names are
// accepted is established at once, because whoever stores it serves it as soon as
// it is seen. One that asks for names of built-in types never is, and ceases to be.
// While a definition is being deleted, nothing else is decided.
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

// restore undoes what a client has made of the parts of a status that only the
// service sets: the names that are accepted, and its own conditions. Conditions of
// other types and the stored versions stay as the client wants them.
func (c Claims) restore(status, old map[string]any) {
	conditions.Restore(status, old, namesAccepted, established, terminating, unstructured, c.Vocabulary.ApprovalCondition)
	delete(status, "acceptedNames")
	if names := old["acceptedNames"]; names != nil {
		status["acceptedNames"] = names
	}
}

// ownStatus gives the object a status that it shares with no other.
func ownStatus(object map[string]any) map[string]any {
	status := maps.Clone(tree.Child(object, "status"))
	if status == nil {
		status = map[string]any{}
	}
	object["status"] = status
	return status
}

// setStructure tells in a condition which schemas do not say which fields there are,
// as those of old definitions need not.
func setStructure(spec, status map[string]any, v vocabulary.Vocabulary, stamp string) {
	violations := structureOf(spec, v)
	if len(violations) == 0 {
		conditions.Drop(status, unstructured)
		return
	}
	conditions.Set(status, conditions.New(unstructured, "True", "Violations", together(violations)), stamp)
}

// structureOf returns what is wrong with the schemas of a spec, in version v1, as
// descriptions of the fields that there are.
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

// together joins what is wrong as one text.
func together(faults []string) string {
	if len(faults) == 1 {
		return faults[0]
	}
	return "[" + strings.Join(faults, ", ") + "]"
}

// storedVersions returns the versions in which objects may be kept: those of
// before, and the one that is stored now.
func storedVersions(spec, status map[string]any) []any {
	kept := tree.Texts(status, "storedVersions")
	for _, version := range children(spec, "versions") {
		if name := tree.Text(version, "name"); version["storage"] == true && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return tree.ListOf(kept)
}
