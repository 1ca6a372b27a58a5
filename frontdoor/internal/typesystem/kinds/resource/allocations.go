package resource

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// The limits on the status of a claim.
const (
	maxResults    = 32
	maxConfigs    = 64 // of the class and of the claim
	maxConditions = 8
	maxAddresses  = 16
	maxBindings   = 4
)

// claimStatus checks the status of a claim: what is allocated never changes, and is what the
// claim requests; users are there only while something is allocated.
func claimStatus(c *rules.Check, m, old map[string]any, at *field.Path) {
	allocation, before := rules.Object(m, "allocation"), rules.Object(old, "allocation")
	users(c, m, old, at.Field("reservedFor"))
	switch where := at.Field("allocation"); {
	case allocation == nil:
	case before == nil:
		allocated(c, rules.Object(allocation, "devices"), where.Field("devices"))
		if selector := rules.Object(allocation, "nodeSelector"); selector != nil {
			pods.NodeSelector(c, selector, where.Field("nodeSelector"))
		}
	case !rules.Same(allocation, before):
		c.Invalid(where, allocation, "field is immutable")
	}
	devices(c, m, allocation, at.Field("devices"))
}

// users checks the objects that a claim is reserved for.
func users(c *rules.Check, m, old map[string]any, at *field.Path) {
	reserved := rules.Objects(m, "reservedFor")
	c.Unique(rules.TextsOf(reserved, "uid"), at)
	had := map[string]bool{}
	for _, user := range rules.Objects(old, "reservedFor") {
		had[field.Display(user)] = true
	}
	added := false
	for i, user := range reserved {
		added = added || !had[field.Display(user)]
		for _, name := range [...]string{"resource", "name", "uid"} {
			if rules.Text(user, name) == "" {
				c.Required(at.Item(i).Field(name), "")
			}
		}
	}
	switch deleted := rules.Object(c.Root, "metadata")["deletionTimestamp"] != nil; {
	case len(reserved) == 0:
	case m["allocation"] == nil:
		c.Forbidden(at, "may not be specified when `allocated` is not set")
	case deleted && added:
		c.Forbidden(at, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set")
	}
}

// allocated checks a new allocation.
func allocated(c *rules.Check, m map[string]any, at *field.Path) {
	requests := requestNames(rules.Object(c.Root, "spec", "devices"))
	results, configs := rules.Objects(m, "results"), rules.Objects(m, "config")
	if len(results) > maxResults {
		c.TooMany(at.Field("results"), len(results), maxResults)
		results = nil
	}
	for i, result := range results {
		at := at.Field("results").Item(i)
		requests.refer(c, rules.Text(result, "request"), at.Field("request"))
		deviceID(c, result, at)
		for _, list := range [...]string{"bindingConditions", "bindingFailureConditions"} {
			conditionTypes(c, rules.Texts(result, list), at.Field(list))
		}
		bindings(c, result, at)
	}
	if len(configs) > maxConfigs {
		c.TooMany(at.Field("config"), len(configs), maxConfigs)
		configs = nil
	}
	for i, config := range configs {
		at := at.Field("config").Item(i)
		switch source := rules.Text(config, "source"); source {
		case "FromClaim", "FromClass":
		case "":
			c.Required(at.Field("source"), "")
		default:
			c.NotSupported(at.Field("source"), source, "FromClaim", "FromClass")
		}
		requests.check(c, config, at.Field("requests"))
		c.Unique(rules.Texts(config, "requests"), at.Field("requests"))
		opaque := rules.Object(config, "opaque")
		if opaque == nil {
			c.Required(at.Field("opaque"), "")
			continue
		}
		driverName(c, rules.Text(opaque, "driver"), at.Field("opaque").Field("driver"))
		if opaque["parameters"] == nil {
			c.Required(at.Field("opaque").Field("parameters"), "")
		}
		driverParameters(c, opaque, nil, at.Field("opaque"))
	}
}

// conditionTypes checks the types of conditions that a device waits for.
func conditionTypes(c *rules.Check, types []string, at *field.Path) {
	if len(types) > maxBindings {
		c.TooMany(at, len(types), maxBindings)
		return
	}
	for i, name := range types {
		for _, problem := range validation.IsQualifiedName(name) {
			c.Invalid(at.Item(i), name, problem)
		}
	}
}

// deviceID checks the fields that identify a device, and a part of it.
func deviceID(c *rules.Check, m map[string]any, at *field.Path) {
	driverName(c, rules.Text(m, "driver"), at.Field("driver"))
	poolName(c, rules.Text(m, "pool"), at.Field("pool"))
	device := rules.Text(m, "device")
	for _, problem := range validation.IsDNS1123Label(device) {
		c.Invalid(at.Field("device"), device, problem)
	}
	if share, ok := m["shareID"].(string); ok && !format.IsUUID(share) {
		c.Invalid(at.Field("shareID"), share, "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters")
	}
}

// identity identifies a device that a claim has.
type identity struct{ driver, pool, device, share string }

func identityOf(m map[string]any) identity {
	return identity{rules.Text(m, "driver"), rules.Text(m, "pool"), rules.Text(m, "device"), rules.Text(m, "shareID")}
}

// devices checks what drivers report about the devices of a claim.
func devices(c *rules.Check, m, allocation map[string]any, at *field.Path) {
	has, seen := map[identity]bool{}, map[identity]bool{}
	for _, result := range rules.Objects(rules.Object(allocation, "devices"), "results") {
		has[identityOf(result)] = true
	}
	for i, device := range rules.Objects(m, "devices") {
		at, id := at.Item(i), identityOf(device)
		deviceID(c, device, at)
		shown := strings.TrimSuffix(strings.Join([]string{id.driver, id.pool, id.device, id.share}, "/"), "/")
		if !has[id] {
			c.Invalid(at, shown, "must be an allocated device in the claim")
		}
		if seen[id] {
			c.Duplicate(at, shown)
		}
		seen[id] = true
		conditions := rules.Objects(device, "conditions")
		if len(conditions) > maxConditions {
			c.TooMany(at.Field("conditions"), len(conditions), maxConditions)
		}
		c.Conditions(conditions, at.Field("conditions"))
		if data := device["data"]; data != nil {
			settings(c, data, maxParameters, at.Field("data"))
		}
		network(c, rules.Object(device, "networkData"), at.Field("networkData"))
	}
}

// network checks the addresses of a network device.
func network(c *rules.Check, m map[string]any, at *field.Path) {
	for name, limit := range map[string]int{"interfaceName": 256, "hardwareAddress": 128} {
		if len(rules.Text(m, name)) > limit {
			c.TooLong(at.Field(name), limit)
		}
	}
	addresses := rules.Texts(m, "ips")
	if at = at.Field("ips"); len(addresses) > maxAddresses {
		c.TooMany(at, len(addresses), maxAddresses)
		return
	}
	for i, address := range addresses {
		if prefix, err := netip.ParsePrefix(address); err != nil {
			c.Invalid(at.Item(i), address, "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)")
		} else if prefix.String() != address {
			c.Invalid(at.Item(i), address, "must be in canonical form (\""+prefix.String()+"\")")
		}
	}
	c.Unique(addresses, at)
}

// dropReports removes, when devices are no longer allocated, what drivers have reported about
// them.
func dropReports(w kinds.Write, obj, old map[string]any) {
	if w.Subresource != "status" {
		return
	}
	gone := map[identity]bool{}
	for _, result := range rules.Objects(rules.Object(old, "status", "allocation", "devices"), "results") {
		gone[identityOf(result)] = true
	}
	status := rules.Object(obj, "status")
	for _, result := range rules.Objects(rules.Object(status, "allocation", "devices"), "results") {
		delete(gone, identityOf(result))
	}
	var left []any
	for _, device := range rules.List(status, "devices") {
		if !gone[identityOf(rules.AsObject(device))] {
			left = append(left, device)
		}
	}
	switch reported := rules.List(status, "devices"); {
	case len(left) == len(reported):
	case len(left) == 0:
		delete(status, "devices")
	default:
		status["devices"] = left
	}
}
