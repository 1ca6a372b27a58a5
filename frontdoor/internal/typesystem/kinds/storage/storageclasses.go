package storage

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// driverOfClass checks the name of the driver of a class, without the difference of upper and
// lower case.
func driverOfClass(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range [...]string{"provisioner", "driverName"} {
		c.Must(validation.IsQualifiedName, strings.ToLower(rules.Text(m, name)), at.Field(name))
	}
}

// Limits of the parameters of a class: their number, and their total size in bytes.
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
		c.TooLong(at.Field("parameters"), maxParameters)
	}
	if size > maxParameterLength {
		c.TooLong(at.Field("parameters"), maxParameterLength)
	}
}

// allowedTopologies checks that topology terms are not empty and not repeated.
func allowedTopologies(c *rules.Check, m, _ map[string]any, at *field.Path) {
	seen := map[string]bool{} // by JSON, which sorts keys
	for i, term := range rules.Objects(m, "allowedTopologies") {
		keys := map[string]any{}
		for _, requirement := range rules.Objects(term, "matchLabelExpressions") {
			values := map[string]any{}
			for _, value := range rules.Texts(requirement, "values") {
				values[value] = true
			}
			keys[rules.Text(requirement, "key")] = values
		}
		written, err := json.Marshal(keys)
		if len(keys) == 0 || err != nil || seen[string(written)] {
			c.Duplicate(at.Field("allowedTopologies").Item(i).Field("matchLabelExpressions"), "")
		}
		seen[string(written)] = true
	}
}

// reclaimPolicy checks the policy. An empty one is a value of its own, which is valid.
func reclaimPolicy(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch policy := rules.Text(m, "reclaimPolicy"); policy {
	case "", "Delete", "Retain":
	default:
		c.NotSupported(at.Field("reclaimPolicy"), policy, "Delete", "Retain")
	}
}
