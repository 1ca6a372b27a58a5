package updates

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// claimStatuses checks the claims that were made for a pod: the pod requires them by name.
func claimStatuses(c *rules.Check, pod map[string]any, at *field.Path) {
	required, seen := map[string]bool{}, map[string]bool{}
	for _, claim := range rules.Objects(rules.Object(pod, "spec"), "resourceClaims") {
		required[rules.Text(claim, "name")] = true
	}
	for i, status := range rules.Objects(rules.Object(pod, "status"), at.Name) {
		at, name := at.Item(i), rules.Text(status, "name")
		if !required[name] {
			c.Invalid(at.Field("name"), name, "must match the name of an entry in `spec.resourceClaims`")
		}
		if seen[name] {
			c.Duplicate(at.Field("name"), name)
		}
		seen[name] = true
		if claim, given := status["resourceClaimName"].(string); given {
			for _, problem := range validation.IsDNS1123Subdomain(claim) {
				c.Invalid(at.Field("resourceClaimName"), claim, problem)
			}
		}
	}
}

// extendedClaim checks the claim for the extended resources of a pod, and which container's
// resource each of its requests is for.
func extendedClaim(c *rules.Check, pod map[string]any, at *field.Path) {
	status := rules.Object(pod, "status", at.Name)
	if status == nil {
		return
	}
	const ofNames, ofRequests = "spec.initContainers.name or spec.containers.name", "spec.initContainers.resources.requests or spec.containers.resources.requests"
	list, seen := at.Field("requestMappings"), map[[3]string]bool{}
	if len(rules.List(status, list.Name)) == 0 {
		c.Required(list, "at least one request mapping is required")
	}
	requests := requestsByContainer(rules.Object(pod, "spec"))
	for i, mapping := range rules.Objects(status, list.Name) {
		container, resource, request := rules.Text(mapping, "containerName"), rules.Text(mapping, "resourceName"), rules.Text(mapping, "requestName")
		switch requested, known := requests[container]; {
		case !known:
			c.Invalid(list.Item(i).Field("containerName"), container, "must match the name of an entry in "+ofNames)
		case requested[resource] == nil:
			c.Invalid(list.Item(i).Field("resourceName"), resource, "must match the extended resource name of an entry in "+ofRequests)
		}
		for _, problem := range validation.IsDNS1123Label(request) {
			c.Invalid(at.Field("requestName"), request, problem)
		}
		key := [3]string{container, resource, request}
		if seen[key] {
			for j, name := range [...]string{"containerName", "resourceName", "requestName"} {
				c.Duplicate(list.Item(i).Field(name), key[j])
			}
		}
		seen[key] = true
	}
	claim := rules.Text(status, "resourceClaimName")
	if claim == "" {
		c.Required(at.Field("resourceClaimName"), "")
	}
	c.Must(validation.IsDNS1123Subdomain, claim, at.Field("resourceClaimName"))
}

// requestsByContainer returns the requests of each container by its name.
func requestsByContainer(spec map[string]any) map[string]map[string]any {
	requests := map[string]map[string]any{}
	for _, list := range containerLists {
		for _, container := range rules.Objects(spec, list) {
			requests[rules.Text(container, "name")] = rules.Object(container, "resources", "requests")
		}
	}
	return requests
}

// containerStatuses checks the users and the health of the resources of containers.
func containerStatuses(c *rules.Check, pod map[string]any, at *field.Path) {
	spec, status := rules.Object(pod, "spec"), rules.Object(pod, "status")
	onWindows := rules.Text(rules.Object(spec, "os"), "name") == "windows"
	for _, lists := range [...]struct{ statuses, containers string }{
		{"containerStatuses", "containers"}, {"initContainerStatuses", "initContainers"}, {"ephemeralContainerStatuses", ""},
	} {
		containers := named(rules.Objects(spec, lists.containers))
		for i, one := range rules.Objects(status, lists.statuses) {
			at := at.Field(lists.statuses).Item(i)
			user(c, rules.Object(one, "user", "linux"), onWindows, at.Field("user").Field("linux"))
			const health = "allocatedResourcesStatus"
			if lists.containers == "" && len(rules.List(one, health)) > 0 {
				c.Forbidden(at.Field(health), "must not be specified in container status")
				continue
			}
			container, known := containers[rules.Text(one, "name")]
			for k, resource := range rules.Objects(one, health) {
				at := at.Field(health).Item(k)
				if known {
					allocated(c, rules.Object(container, "resources"), rules.Text(resource, "name"), at.Field("name"))
				}
				healths(c, rules.Objects(resource, "resources"), at.Field("resources"))
			}
		}
	}
}

// largestID is the largest number of a user or group.
const largestID = 1<<31 - 1

func user(c *rules.Check, linux map[string]any, onWindows bool, at *field.Path) {
	if linux == nil {
		return
	}
	if onWindows {
		c.Forbidden(at, "cannot be set for a windows pod")
		return
	}
	check := func(value any, at *field.Path) {
		if id, _ := rules.Whole(value); id < 0 || id > largestID {
			c.Invalid(at, id, validation.InclusiveRangeError(0, largestID))
		}
	}
	check(linux["uid"], at.Field("uid"))
	check(linux["gid"], at.Field("gid"))
	for i, group := range rules.List(linux, "supplementalGroups") {
		check(group, at.Field("supplementalGroups").Item(i))
	}
}

// allocated checks that a container has a resource or claim whose health is reported.
func allocated(c *rules.Check, resources map[string]any, name string, at *field.Path) {
	if !strings.HasPrefix(name, "claim:") {
		if rules.Object(resources, "requests")[name] == nil {
			c.Invalid(at, name, "must match one of the container's resource requests")
		}
		return
	}
	for _, claim := range rules.Objects(resources, "claims") {
		own := "claim:" + rules.Text(claim, "name")
		if request := rules.Text(claim, "request"); request != "" {
			own += "/" + request
		}
		if own == name {
			return
		}
	}
	c.Invalid(at, name, "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty")
}

// longestHealth limits the message about a resource, in bytes.
const longestHealth = 1024

func healths(c *rules.Check, resources []map[string]any, at *field.Path) {
	seen := map[string]bool{}
	for i, resource := range resources {
		at, id := at.Item(i), rules.Text(resource, "resourceID")
		switch health := rules.Text(resource, "health"); health {
		case "Healthy", "Unhealthy", "Unknown":
		default:
			c.NotSupported(at.Field("health"), health, "Healthy", "Unhealthy", "Unknown")
		}
		switch message, given := resource["message"].(string); {
		case given && message == "":
			c.Required(at.Field("message"), "must be non-empty if specified")
		case len(message) > longestHealth:
			c.TooLong(at.Field("message"), longestHealth)
		}
		if seen[id] {
			c.Duplicate(at.Field("resourceID"), id)
		}
		seen[id] = true
	}
}
