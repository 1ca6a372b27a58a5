package resource

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// The limits on the devices of a slice.
const (
	maxDevices         = 128
	maxAdvancedDevices = 64 // with taints, counters or lists of values
	maxAttributes      = 32 // with capacities
	maxValues          = 48
)

// sliceSpec checks a slice: to which nodes its devices belong, and each device.
func sliceSpec(c *rules.Check, m, _ map[string]any, at *field.Path) {
	perDevice := m["perDeviceNodeSelection"] == true
	ofNodes := nodes{c, m, at, "must be either unset or set to a non-empty string"}
	ofNodes.check("exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required", "perDeviceNodeSelection")
	if terms := rules.List(rules.Object(m, "nodeSelector"), "nodeSelectorTerms"); m["nodeSelector"] != nil && len(terms) != 1 {
		c.Invalid(at.Field("nodeSelector").Field("nodeSelectorTerms"), terms, "must have exactly one node selector term")
	}
	devices := rules.Objects(m, "devices")
	if m["devices"] != nil && m["sharedCounters"] != nil {
		c.Invalid(at, "", "only one of `sharedCounters` or `devices` is allowed")
	}
	limit := maxDevices
	for _, device := range devices {
		if advanced(device) {
			limit = maxAdvancedDevices
		}
	}
	at = at.Field("devices")
	c.Unique(rules.TextsOf(devices, "name"), at)
	if len(devices) > limit {
		c.TooMany(at, len(devices), limit)
		return
	}
	for i, device := range devices {
		checkDevice(c, device, perDevice, at.Item(i))
	}
}

// advanced reports whether a device has what makes its slice smaller.
func advanced(device map[string]any) bool {
	for _, attribute := range rules.Object(device, "attributes") {
		for _, list := range valueLists {
			if rules.AsObject(attribute)[list] != nil {
				return true
			}
		}
	}
	return len(rules.List(device, "taints")) > 0 || len(rules.List(device, "consumesCounters")) > 0
}

// valueLists are the fields of an attribute that are lists.
var valueLists = [...]string{"bools", "ints", "strings", "versions"}

func checkDevice(c *rules.Check, m map[string]any, perDevice bool, at *field.Path) {
	attributes, capacity := rules.Object(m, "attributes"), rules.Object(m, "capacity")
	if n := len(attributes) + len(capacity); n > maxAttributes {
		c.Invalid(at, n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", maxAttributes))
	}
	values := 0
	for _, attribute := range attributes {
		listed := 0
		for _, list := range valueLists {
			listed += len(rules.List(rules.AsObject(attribute), list))
		}
		values += max(1, listed)
	}
	if values > maxValues {
		c.Invalid(at, values, fmt.Sprintf("the total number of attribute values must not exceed %d", maxValues))
	}
	for name := range attributes {
		attributeName(c, name, at.Field("attributes"))
	}
	for name, value := range capacity {
		attributeName(c, name, at.Field("capacity"))
		deviceCapacity(c, rules.AsObject(value), m["allowMultipleAllocations"] == true, at.Field("capacity").Entry(name).Field("requestPolicy"))
	}
	bindings(c, m, at)
	switch {
	case perDevice:
		nodes{c, m, at, "must not be empty"}.check("exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
	case m["nodeName"] != nil || m["nodeSelector"] != nil || m["allNodes"] != nil:
		c.Invalid(at, nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
	}
}

// nodes checks the fields that say to which nodes devices belong.
type nodes struct {
	*rules.Check
	fields map[string]any
	at     *field.Path
	empty  string // the message for an empty name
}

// check checks that exactly one of the fields is set, or the flag that there is besides.
func (n nodes) check(why string, flags ...string) {
	var set []string
	if name, given := n.fields["nodeName"]; given && name == "" {
		n.Invalid(n.at.Field("nodeName"), name, n.empty)
	} else if given {
		set = append(set, "`nodeName`")
		n.Must(validation.IsDNS1123Subdomain, rules.Text(n.fields, "nodeName"), n.at.Field("nodeName"))
	}
	if selector := rules.Object(n.fields, "nodeSelector"); selector != nil {
		pods.NodeValues(n.Check, selector, nil, n.at.Field("nodeSelector"))
		set = append(set, "`nodeSelector`")
	}
	for _, flag := range append([]string{"allNodes"}, flags...) {
		switch n.fields[flag] {
		case true:
			set = append(set, "`"+flag+"`")
		case false:
			n.Invalid(n.at.Field(flag), false, "must be either unset or set to true")
		}
	}
	several := why
	if len(flags) > 0 { // of a slice
		several += ", but multiple fields are set"
	}
	switch {
	case len(set) == 0:
		n.Required(n.at, why)
	case len(set) > 1:
		n.Invalid(n.at, "{"+strings.Join(set, ", ")+"}", several)
	}
}

// deviceAttribute checks that an attribute has exactly one value, and no empty list.
func deviceAttribute(c *rules.Check, m, _ map[string]any, at *field.Path) {
	given := 0
	for _, name := range [...]string{"bool", "int", "string", "version"} {
		if m[name] != nil {
			given++
		}
	}
	for _, name := range valueLists {
		if list, ok := m[name].([]any); ok {
			given++
			if len(list) == 0 {
				c.Invalid(at.Field(name), list, "must not be empty if specified")
			}
		}
	}
	switch why := "exactly one value must be specified"; given {
	case 0:
		c.Invalid(at, "", why)
	case 1:
	default:
		c.Invalid(at, m, why)
	}
}

// taintStatus checks the conditions of a rule that taints devices.
func taintStatus(c *rules.Check, m, _ map[string]any, at *field.Path) {
	c.Conditions(rules.Objects(m, "conditions"), at.Field("conditions"))
}

// poolStatus checks an answer about pools, which is given once.
func poolStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	if len(old) > 0 && !rules.Same(m, old) {
		c.Invalid(at, "<value omitted>", "field is immutable")
		return
	}
	c.Conditions(rules.Objects(m, "conditions"), at.Field("conditions"))
}

// devicePool checks the name of the pool of a slice.
func devicePool(c *rules.Check, m, _ map[string]any, at *field.Path) {
	poolName(c, rules.Text(m, "name"), at.Field("name"))
}

// queriedPool checks the name of the pool that a question is about.
func queriedPool(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if name, given := m["poolName"].(string); given {
		poolName(c, name, at.Field("poolName"))
	}
}

// taintSelector checks the names that select the devices that a rule taints.
func taintSelector(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if name, given := m["driver"].(string); given {
		driverName(c, name, at.Field("driver"))
	}
	if name, given := m["pool"].(string); given {
		poolName(c, name, at.Field("pool"))
	}
}
