package resource

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// deviceCount checks that a request of a number of devices has one, and a request of all
// devices none.
func deviceCount(c *rules.Check, m, _ map[string]any, at *field.Path) {
	count := rules.Number(m, "count")
	switch rules.Text(m, "allocationMode") {
	case "All":
		if count != 0 {
			c.Invalid(at.Field("count"), count, "must not be specified when allocationMode is 'All'")
		}
	case "ExactCount":
		if count <= 0 {
			c.Invalid(at.Field("count"), count, "must be greater than zero")
		}
	case "": // only of v1beta1, where it has no default without a class
		c.NotSupported(at.Field("allocationMode"), "", "All", "ExactCount")
	}
}

// deviceToleration checks that a toleration of any value has none.
func deviceToleration(c *rules.Check, m, _ map[string]any, at *field.Path) {
	switch value := rules.Text(m, "value"); rules.Text(m, "operator") {
	case "Exists":
		if value != "" {
			c.Invalid(at.Field("value"), value, "must be empty for operator `Exists`")
		}
	case "Equal":
		c.Must(validation.IsValidLabelValue, value, at.Field("value"))
	}
}

// deviceConstraint checks that a constraint has an attribute, and its name. The second name is
// only looked at without the first.
func deviceConstraint(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, of := range [...]string{"matchAttribute", "distinctAttribute"} {
		if name, given := m[of].(string); given {
			fullAttributeName(c, name, at.Field(of))
			return
		}
	}
	c.Required(at, "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set")
}

// maxParameters is the limit on the parameters of a driver in bytes.
const maxParameters = 10 << 10

// driverParameters checks that the parameters of a driver are an object, which is not too large.
// Those that are stored may be larger.
func driverParameters(c *rules.Check, m, _ map[string]any, at *field.Path) {
	value, given := m["parameters"]
	if !given || value == nil {
		return // required, and reported as such
	}
	settings(c, value, maxParameters, at.Field("parameters"))
}

// settings checks that a value is an object of no more bytes than a limit.
func settings(c *rules.Check, value any, limit int, at *field.Path) {
	if _, ok := value.(map[string]any); !ok {
		c.Invalid(at, "<value omitted>", "must be a valid JSON object")
	} else if len(field.Display(value)) > limit {
		c.TooLong(at, limit)
	}
}

// claimSpec checks the devices of a new claim or of a template: that all parts name requests of
// the claim, and the expressions. The devices of a claim never change.
func claimSpec(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && at.Parent == nil {
		return
	}
	devices, at := rules.Object(m, "devices"), at.Field("devices")
	requests, selectors := requestNames(devices), newSelectors(c)
	for _, list := range [...]string{"constraints", "config"} {
		for i, item := range rules.Objects(devices, list) {
			requests.check(c, item, at.Field(list).Item(i).Field("requests"))
		}
	}
	c.Unique(rules.TextsOf(rules.Objects(devices, "requests"), "name"), at.Field("requests"))
	for i, request := range rules.Objects(devices, "requests") {
		at, exactly, several := at.Field("requests").Item(i), rules.Object(request, "exactly"), rules.Objects(request, "firstAvailable")
		if exactly != nil && len(several) > 0 {
			continue // refused as such
		}
		c.Unique(rules.TextsOf(several, "name"), at.Field("firstAvailable"))
		selectors.check(exactly, at.Field("exactly"))
		for j, one := range several {
			selectors.check(one, at.Field("firstAvailable").Item(j))
		}
	}
}

// betaCount defaults how many devices a request of v1beta1 is for, if it is for one kind.
func betaCount(m map[string]any, _ vocabulary.Vocabulary) {
	if rules.Text(m, "deviceClassName") == "" {
		return
	}
	if rules.Text(m, "allocationMode") == "" {
		m["allocationMode"] = "ExactCount"
	}
	if m["allocationMode"] == "ExactCount" && rules.Number(m, "count") == 0 {
		m["count"] = int64(1)
	}
}

// names are the requests of a claim, each with those of which one is chosen.
type names map[string]map[string]bool

func requestNames(devices map[string]any) names {
	all := names{}
	for _, request := range rules.Objects(devices, "requests") {
		chosen := map[string]bool{}
		for _, one := range rules.Objects(request, "firstAvailable") {
			chosen[rules.Text(one, "name")] = true
		}
		all[rules.Text(request, "name")] = chosen
	}
	return all
}

// check checks the requests that an item of a list names.
func (n names) check(c *rules.Check, item map[string]any, at *field.Path) {
	for i, name := range rules.Texts(item, "requests") {
		n.refer(c, name, at.Item(i))
	}
}

// refer checks the name of a request, or of one of those below it.
func (n names) refer(c *rules.Check, name string, at *field.Path) {
	const why = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	segments := strings.Split(name, "/")
	if len(segments) > 2 {
		c.Invalid(at, name, why)
		return
	}
	for _, segment := range segments {
		for _, problem := range validation.IsDNS1123Label(segment) {
			c.Invalid(at, segment, problem)
		}
	}
	below, known := n[segments[0]]
	if !known || len(segments) == 2 && !below[segments[1]] {
		c.Invalid(at, name, why)
	}
}

// bindings checks the conditions that a device waits for before a pod is bound.
func bindings(c *rules.Check, m map[string]any, at *field.Path) {
	expected, failed := rules.Texts(m, "bindingConditions"), rules.Texts(m, "bindingFailureConditions")
	c.Unique(expected, at.Field("bindingConditions"))
	c.Unique(failed, at.Field("bindingFailureConditions"))
	waits := make(map[string]bool, len(expected))
	for _, condition := range expected {
		waits[condition] = true
	}
	for i, condition := range failed {
		if waits[condition] {
			c.Invalid(at.Field("bindingFailureConditions").Item(i), condition, "bindingFailureConditions must not overlap with bindingConditions")
		}
	}
	for _, pair := range [...]struct {
		missing, given string
		lacks          bool
	}{{"bindingConditions", "bindingFailureConditions", len(expected) == 0 && len(failed) > 0}, {"bindingFailureConditions", "bindingConditions", len(failed) == 0 && len(expected) > 0}} {
		if pair.lacks {
			c.Invalid(at.Field(pair.missing), nil, fmt.Sprintf("%s are required to use %s", pair.missing, pair.given))
		}
	}
}
