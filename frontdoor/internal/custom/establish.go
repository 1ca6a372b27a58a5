package custom

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/custom/structural"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Conditions of a definition.
const (
	namesAccepted = "NamesAccepted"
	established   = "Established"
	terminating   = "Terminating"
	unstructured  = "NonStructuralSchema"
)

// Establish sets the status of a definition that is about to be stored, in any
// version: the names that it is given, the versions in which objects may be kept,
// and its conditions. The others are all other definitions; those of its group
// keep the names that they were given first. A definition whose names are accepted
// is established at once, because whoever stores it serves it as soon as it is
// seen.
func Establish(object map[string]any, others []Definition, v vocabulary.Vocabulary, now time.Time) {
	s := child(asV1(object, v), "spec")
	status := ownStatus(object)
	accepted, conflicts := accept(namesOf(child(s, "names")).completed(), namesOf(child(status, "acceptedNames")), taken(object, s, others))
	status["acceptedNames"] = accepted.object()
	status["storedVersions"] = storedVersions(s, status)
	stamp := now.UTC().Format(time.RFC3339)
	setApproval(object, status, v, stamp)
	setStructure(s, status, v, stamp)
	if len(conflicts) > 0 {
		last := conflicts[len(conflicts)-1]
		setCondition(status, condition(namesAccepted, "False", last.reason, last.message), stamp)
		if !conditionTrue(status, established) {
			setCondition(status, condition(established, "False", "NotAccepted", "not all names are accepted"), stamp)
		}
		return
	}
	setCondition(status, condition(namesAccepted, "True", "NoConflicts", "no conflicts found"), stamp)
	if !conditionTrue(status, established) {
		setCondition(status, condition(established, "True", "InitialNamesAccepted", "the initial names have been accepted"), stamp)
	}
}

// ownStatus gives the object a status that it shares with no other.
func ownStatus(object map[string]any) map[string]any {
	status := maps.Clone(child(object, "status"))
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
		dropCondition(status, unstructured)
		return
	}
	setCondition(status, condition(unstructured, "True", "Violations", together(violations)), stamp)
}

// structureOf returns what is wrong with the schemas of a spec, in version v1, as
// descriptions of the fields that there are.
func structureOf(spec map[string]any, v vocabulary.Vocabulary) (violations []string) {
	c := structural.Schemas{Extension: v.Extension}
	if spec["preserveUnknownFields"] == true {
		c.Invalid(at("preserveUnknownFields"), true, "must be false")
	}
	for i, version := range children(spec, "versions") {
		if raw := child(child(version, "schema"), "openAPIV3Schema"); raw != nil {
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

// conflict is a name that somebody else has.
type conflict struct{ reason, message string }

// inUse are the names that others have: of resources, and of kinds.
type inUse struct{ resources, kinds map[string]bool }

// taken collects the names of the other definitions of the group.
func taken(object, spec map[string]any, others []Definition) inUse {
	used := inUse{map[string]bool{}, map[string]bool{}}
	for _, other := range others {
		if other.Group != text(spec, "group") || other.Name == text(child(object, "metadata"), "name") {
			continue
		}
		for _, name := range append([]string{other.accepted.Plural, other.accepted.Singular}, other.accepted.ShortNames...) {
			used.resources[name] = true
		}
		used.kinds[other.accepted.Kind], used.kinds[other.accepted.ListKind] = true, true
	}
	return used
}

// accept returns the names that a definition has from now on: what it asks for and
// nobody else has, else what it had before.
func accept(asked, had Names, used inUse) (Names, []conflict) {
	var conflicts []conflict
	claim := func(what, name, before string, used map[string]bool) string {
		if name == "" || name == before || !used[name] {
			return name
		}
		conflicts = append(conflicts, conflict{what + "Conflict", strconv.Quote(name) + " is already in use"})
		return before
	}
	given := Names{Categories: asked.Categories, ShortNames: asked.ShortNames}
	given.Plural = claim("Plural", asked.Plural, had.Plural, used.resources)
	given.Singular = claim("Singular", asked.Singular, had.Singular, used.resources)
	var inUse []string
	for _, name := range asked.ShortNames {
		if used.resources[name] && !slices.Contains(had.ShortNames, name) && !slices.Contains(inUse, strconv.Quote(name)+" is already in use") {
			inUse = append(inUse, strconv.Quote(name)+" is already in use")
		}
	}
	if len(inUse) > 0 {
		conflicts, given.ShortNames = append(conflicts, conflict{"ShortNamesConflict", together(inUse)}), had.ShortNames
	}
	given.Kind = claim("Kind", asked.Kind, had.Kind, used.kinds)
	given.ListKind = claim("ListKind", asked.ListKind, had.ListKind, used.kinds)
	return given, conflicts
}

// object writes the names as a status has them.
func (n Names) object() map[string]any {
	m := map[string]any{"plural": n.Plural, "kind": n.Kind}
	for name, value := range map[string]string{"singular": n.Singular, "listKind": n.ListKind} {
		if value != "" {
			m[name] = value
		}
	}
	for name, values := range map[string][]string{"shortNames": n.ShortNames, "categories": n.Categories} {
		if len(values) > 0 {
			m[name] = list(values)
		}
	}
	return m
}

// storedVersions returns the versions in which objects may be kept: those of
// before, and the one that is stored now.
func storedVersions(spec, status map[string]any) []any {
	kept := texts(status, "storedVersions")
	for _, version := range children(spec, "versions") {
		if name := text(version, "name"); version["storage"] == true && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return list(kept)
}

func list(values []string) []any {
	l := make([]any, len(values))
	for i, v := range values {
		l[i] = v
	}
	return l
}

func condition(kind, state, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": state, "reason": reason, "message": message}
}

// setCondition replaces the condition of that type. The time of its last
// transition changes with its status alone.
func setCondition(status, c map[string]any, stamp string) {
	conditions, _ := status["conditions"].([]any)
	conditions = slices.Clone(conditions)
	c["lastTransitionTime"] = stamp
	for i, before := range conditions {
		had, _ := before.(map[string]any)
		if had["type"] != c["type"] {
			continue
		}
		if at, ok := had["lastTransitionTime"]; ok && had["status"] == c["status"] {
			c["lastTransitionTime"] = at
		}
		if !reflect.DeepEqual(had, c) {
			conditions[i] = c
		}
		status["conditions"] = conditions
		return
	}
	status["conditions"] = append(conditions, c)
}

// dropCondition removes the condition of a type.
func dropCondition(status map[string]any, kind string) {
	conditions, _ := status["conditions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(conditions), func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == kind
	})
	if len(kept) < len(conditions) {
		status["conditions"] = kept
	}
}

func conditionTrue(status map[string]any, kind string) bool {
	for _, c := range children(status, "conditions") {
		if c["type"] == kind {
			return c["status"] == "True"
		}
	}
	return false
}
