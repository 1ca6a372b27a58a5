package core

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
	"k8s.io/apimachinery/pkg/util/validation"
)

// nodeCIDRs checks that a Node has at most one pod range per IP family.
func nodeCIDRs(c *rules.Check, m, _ map[string]any, at *field.Path) {
	ranges, at := rules.Texts(m, "podCIDRs"), at.Field("podCIDRs")
	if len(ranges) > 2 || len(ranges) == 2 && strings.Contains(ranges[0], ":") == strings.Contains(ranges[1], ":") {
		c.Invalid(at, ranges, "may specify no more than one CIDR for each IP family")
	}
}

// sameCIDRs makes podCIDR the first of podCIDRs. If both are given and differ, podCIDR
// wins.
func sameCIDRs(m map[string]any, _ vocabulary.Vocabulary) {
	first, ranges := rules.Text(m, "podCIDR"), rules.Texts(m, "podCIDRs")
	switch {
	case first == "" && len(ranges) > 0:
		m["podCIDR"] = ranges[0]
	case first != "" && (len(ranges) == 0 || ranges[0] != first):
		m["podCIDRs"] = []any{first}
	}
}

// nodeTaints validates taints, and that no key has an effect twice. As in Kubernetes,
// errors have a path below metadata.
func nodeTaints(c *rules.Check, m, _ map[string]any, at *field.Path) {
	at = at.Field("metadata").Field("taints")
	seen := map[[2]string]bool{}
	for i, taint := range rules.Objects(rules.Object(m, "spec"), "taints") {
		where, key, value, effect := at.Item(i), rules.Text(taint, "key"), rules.Text(taint, "value"), rules.Text(taint, "effect")
		for _, problem := range validation.IsQualifiedName(key) {
			c.Invalid(where.Field("key"), key, problem)
		}
		c.Must(validation.IsValidLabelValue, value, where.Field("value"))
		switch effect {
		case "NoSchedule", "PreferNoSchedule", "NoExecute":
		case "":
			c.Required(where.Field("effect"), "")
		default:
			c.NotSupported(where.Field("effect"), effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		}
		if id := [2]string{key, effect}; seen[id] {
			c.Duplicate(where, taint)
		} else {
			seen[id] = true
		}
	}
}

// nodeStatus checks that resources are not negative, and that addresses are not repeated.
func nodeStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	status, at := rules.Object(m, "status"), at.Field("status")
	for _, of := range [...]string{"capacity", "allocatable"} {
		for name, value := range rules.Object(status, of) {
			amount(c, value, isCounted(c, name), at.Field(of).Field(name))
		}
	}
	if old == nil {
		return
	}
	seen := map[[2]string]bool{}
	for i, address := range rules.Objects(status, "addresses") {
		id := [2]string{rules.Text(address, "type"), rules.Text(address, "address")}
		if seen[id] {
			c.Duplicate(at.Field("addresses").Item(i), address)
		}
		seen[id] = true
	}
}

// featureName is the name of a feature that a node declares, or of a part of one.
var featureName = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z0-9]+)*$`)

// declaredFeatures checks the features that a node declares, which are in order.
func declaredFeatures(c *rules.Check, m, _ map[string]any, at *field.Path) {
	at = at.Field("status").Field("declaredFeatures")
	before := ""
	for i, name := range rules.Texts(rules.Object(m, "status"), at.Name) {
		at, invalid := at.Item(i), fmt.Sprintf("invalid feature name %q: ", name)
		switch {
		case len(name) > validation.DNS1123SubdomainMaxLength:
			c.Invalid(at, name, fmt.Sprintf("%smust be no more than %d characters", invalid, validation.DNS1123SubdomainMaxLength))
		case !featureName.MatchString(name):
			c.Invalid(at, name, invalid+"must start with an UpperCamelCase segment, with subsequent segments separated by '/' "+
				"(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes")
		}
		switch {
		case i > 0 && name == before:
			c.Duplicate(at, name)
		case name < before:
			c.Invalid(at, name, "list must be sorted alphabetically")
		}
		before = name
	}
}

// nodeChanges checks the fields that are immutable once they are set.
func nodeChanges(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil {
		return
	}
	if !rules.Empty(old["podCIDRs"]) && !rules.Same(m["podCIDRs"], old["podCIDRs"]) {
		c.Forbidden(at.Field("podCIDRs"), "node updates may not change podCIDR except from \"\" to valid")
	}
	if !rules.Empty(old["providerID"]) && !rules.Same(m["providerID"], old["providerID"]) {
		c.Forbidden(at.Field("providerID"), "node updates may not change providerID except from \"\" to valid")
	}
	if !rules.Same(m["externalID"], old["externalID"]) {
		c.Forbidden(at.Field("externalID"), "may not be updated")
	}
}

// allocatableIsCapacity defaults allocatable to the capacity.
func allocatableIsCapacity(m map[string]any, _ vocabulary.Vocabulary) {
	if capacity := rules.Object(m, "capacity"); len(capacity) > 0 && m["allocatable"] == nil {
		rules.Complete(m, map[string]any{"allocatable": capacity})
	}
}

// unusedNodeFields warns of fields that nothing reads.
func unusedNodeFields(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if rules.Text(rules.Object(m, "spec"), "externalID") != "" && c.Subresource == "" {
		c.Warn(at.Field("spec").Field("externalID").String() + ": this field is deprecated, and is unused by Kubernetes")
	}
}
