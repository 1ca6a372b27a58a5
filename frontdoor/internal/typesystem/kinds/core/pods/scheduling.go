package pods

import (
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

func tolerationOperator(c *rules.Check, m, _ map[string]any, at *field.Path) {
	operator, value := rules.Text(m, "operator"), rules.Text(m, "value")
	if rules.Text(m, "key") == "" && operator != "Exists" {
		c.Invalid(at.Field("operator"), operator, "operator must be Exists when `key` is empty, which means \"match all values and all keys\"")
	}
	switch operator {
	case "", "Equal":
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			c.Invalid(at.Field("operator"), value, strings.Join(problems, ";"))
		}
	case "Exists":
		if value != "" {
			c.Invalid(at.Field("operator"), value, "value must be empty when `operator` is 'Exists'")
		}
	case "Gt", "Lt":
		if c.Release.Before(compared) {
			c.NotSupported(at.Field("operator"), operator, "Equal", "Exists")
		} else {
			comparedValue(c, operator, value, at)
		}
	default:
		c.NotSupported(at.Field("operator"), operator, "Equal", "Exists")
	}
	if m["tolerationSeconds"] != nil && rules.Text(m, "effect") != "NoExecute" {
		c.Invalid(at.Field("effect"), rules.Text(m, "effect"), "effect must be 'NoExecute' when `tolerationSeconds` is set")
	}
}

// compared is the first release that knows tolerations of numbers.
var compared, _ = release.Of("1.35")

// comparedValue checks a toleration of the taints with a lower or higher number.
func comparedValue(c *rules.Check, operator, value string, at *field.Path) {
	if !c.On("TaintTolerationComparisonOperators") {
		c.NotSupported(at.Field("operator"), operator, "Equal", "Exists", "Gt", "Lt")
		return
	}
	for _, problem := range content.IsDecimalInteger(value) {
		c.Invalid(at.Field("value"), value, problem)
	}
	if _, err := strconv.ParseInt(value, 10, 64); err != nil {
		c.Invalid(at.Field("value"), value, err.Error())
	}
}

// notAnOperator is the message for unknown operators.
const notAnOperator = "not a valid selector operator"

// nodeTerm validates a node selector term: expressions about labels, and about the only
// supported field, metadata.name.
func nodeTerm(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for i, want := range rules.Objects(m, "matchExpressions") {
		nodeLabel(c, want, at.Field("matchExpressions").Item(i))
	}
	for i, want := range rules.Objects(m, "matchFields") {
		nodeField(c, want, at.Field("matchFields").Item(i))
	}
}

// nodeValues checks that the labels that a pod requires of its node are possible. An update
// keeps those that older releases have accepted.
func nodeValues(c *rules.Check, m, old map[string]any, at *field.Path) {
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	before, now := rules.Object(old, "affinity", "nodeAffinity", required), rules.Object(m, "affinity", "nodeAffinity", required)
	if now != nil {
		NodeValues(c, now, before, at.Field("affinity").Field("nodeAffinity").Field(required))
	}
}

// NodeSelector validates a node selector in a part of an object that has no rules of its own.
func NodeSelector(c *rules.Check, selector map[string]any, at *field.Path) {
	terms := rules.Objects(selector, "nodeSelectorTerms")
	if len(terms) == 0 {
		c.Required(at.Field("nodeSelectorTerms"), "must have at least one node selector term")
	}
	for i, term := range terms {
		nodeTerm(c, term, nil, at.Field("nodeSelectorTerms").Item(i))
	}
	NodeValues(c, selector, nil, at)
}

// NodeValues validates the values of a node selector, unless the stored one has invalid values.
func NodeValues(c *rules.Check, selector, old map[string]any, at *field.Path) {
	if old != nil {
		before := rules.Check{}
		if NodeValues(&before, old, nil, nil); before.Any() {
			return
		}
	}
	for i, term := range rules.Objects(selector, "nodeSelectorTerms") {
		for j, expression := range rules.Objects(term, "matchExpressions") {
			for k, value := range rules.Texts(expression, "values") {
				for _, problem := range validation.IsValidLabelValue(value) {
					c.Invalid(at.Field("nodeSelectorTerms").Item(i).Field("matchExpressions").Item(j).Field("values").Item(k), value, problem)
				}
			}
		}
	}
}

func nodeLabel(c *rules.Check, want map[string]any, at *field.Path) {
	operator := rules.Text(want, "operator")
	if !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}, operator) {
		c.Invalid(at.Field("operator"), operator, notAnOperator)
	}
	c.OperatorValues(want, at)
	for _, problem := range validation.IsQualifiedName(rules.Text(want, "key")) {
		c.Invalid(at.Field("key"), rules.Text(want, "key"), problem)
	}
}

func nodeField(c *rules.Check, want map[string]any, at *field.Path) {
	switch operator := rules.Text(want, "operator"); {
	case operator != "In" && operator != "NotIn":
		c.Invalid(at.Field("operator"), operator, notAnOperator)
	case len(rules.List(want, "values")) != 1:
		c.Required(at.Field("values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
	}
	if key := rules.Text(want, "key"); key != "metadata.name" {
		c.Invalid(at.Field("key"), key, "not a valid field selector key")
		return
	}
	for i, name := range rules.Texts(want, "values") {
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			c.Invalid(at.Field("values").Item(i), name, problem)
		}
	}
}

// spreadOnce checks that no two topology spread constraints have the same topologyKey and
// whenUnsatisfiable. As in Kubernetes, the earlier ones of duplicates are reported.
func spreadOnce(c *rules.Check, m, _ map[string]any, at *field.Path) {
	const list = "topologySpreadConstraints"
	constraints := rules.Objects(m, list)
	if len(constraints) < 2 {
		return
	}
	type way struct{ key, action string }
	later := make(map[way]bool, len(constraints))
	for i := len(constraints) - 1; i >= 0; i-- {
		w := way{rules.Text(constraints[i], "topologyKey"), rules.Text(constraints[i], "whenUnsatisfiable")}
		if later[w] {
			c.Duplicate(at.Field(list).Item(i).Field("{topologyKey, whenUnsatisfiable}"), "{"+w.key+", "+w.action+"}")
		}
		later[w] = true
	}
}
