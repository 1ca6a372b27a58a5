package updates

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// statusChange validates an update of a pod's status.
func statusChange(c *rules.Check, m, old map[string]any, at *field.Path) {
	before, after := rules.Object(old, "status"), rules.Object(m, "status")
	policy := rules.Object(m, "spec")["restartPolicy"]
	at = at.Field("status")
	c.Must(validation.IsDNS1123Subdomain, rules.Text(after, "nominatedNodeName"), at.Field("nominatedNodeName"))
	for _, list := range [...]string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
		if list == "ephemeralContainerStatuses" {
			policy = "Never" // ephemeral containers are never restarted
		}
		running := runningIn(after, list)
		for i, was := range rules.Objects(before, list) {
			if startedAgain(was, running, policy) {
				c.Forbidden(at.Field(list).Item(i).Field("state"), "may not be transitioned to non-terminated state")
			}
		}
	}
	for i, condition := range rules.Objects(after, "conditions") {
		kind := rules.Text(condition, "type")
		for _, problem := range validation.IsQualifiedName(kind) {
			c.Invalid(at.Field("conditions").Item(i).Field("Type"), kind, problem)
		}
	}
	podIPs(c, rules.Objects(after, "podIPs"), at.Field("podIPs"))
}

// startedAgain reports whether a container that terminated and must not be restarted is no
// longer terminated.
func startedAgain(was map[string]any, running map[string]bool, policy any) bool {
	ended := rules.Object(was, "state", "terminated")
	if policy == "Always" || ended == nil || policy == "OnFailure" && rules.Number(ended, "exitCode") != 0 {
		return false
	}
	return running[rules.Text(was, "name")]
}

// runningIn returns the names in a list of container statuses that are not terminated.
func runningIn(status map[string]any, list string) map[string]bool {
	items := rules.Objects(status, list)
	running := make(map[string]bool, len(items))
	for _, item := range items {
		if rules.Object(item, "state", "terminated") == nil {
			running[rules.Text(item, "name")] = true
		}
	}
	return running
}

// podIPs checks that a pod has at most one address per IP family.
func podIPs(c *rules.Check, all []map[string]any, at *field.Path) {
	seen, families := map[string]bool{}, map[bool]bool{}
	for i, one := range all {
		ip := rules.Text(one, "ip")
		for _, problem := range format.IP(ip) {
			c.Invalid(at.Item(i), ip, problem)
		}
		if seen[ip] {
			c.Duplicate(at.Item(i), one)
		}
		address, _ := netip.ParseAddr(ip)
		seen[ip], families[address.Is4()] = true, true
	}
	if len(families) < len(all) {
		c.Invalid(at, all, "may specify no more than one IP for each IP family")
	}
}
