package pods

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// containerLists are the fields of a pod's spec with lists of type Container.
var containerLists = [...]string{"initContainers", "containers"}

// newPod checks that a new pod has no ephemeral containers: the subresource adds them.
func newPod(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil && len(rules.List(rules.Object(m, "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(at.Field("spec").Field("ephemeralContainers"), "cannot be set on create")
	}
}

// templateContainers checks that a pod template has no ephemeral containers.
func templateContainers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(rules.Object(m, "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(at.Field("spec").Field("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

// podImages checks that images have no surrounding whitespace. Pod templates may have it,
// because images there can be placeholders.
func podImages(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, list := range containerLists {
		for i, container := range rules.Objects(rules.Object(m, "spec"), list) {
			if image := rules.Text(container, "image"); strings.TrimSpace(image) != image {
				c.Invalid(at.Field("spec").Field(list).Item(i).Field("image"), image, "must not have leading or trailing whitespace")
			}
		}
	}
}

// longestSearch limits the DNS search list in bytes, with spaces: older resolvers read no more
// than the former limit.
const (
	formerLongestSearch = 256
	longestSearch       = 2048
)

// longSearches is the first release with the longer list.
var longSearches, _ = release.Of("1.26")

func podDNS(c *rules.Check, m, _ map[string]any, at *field.Path) {
	config := rules.Object(m, "dnsConfig")
	if config == nil && m["dnsPolicy"] != "None" {
		return
	}
	at = at.Field("dnsConfig")
	switch {
	case m["dnsPolicy"] != "None":
	case config == nil:
		c.Required(at, "must provide `dnsConfig` when `dnsPolicy` is None")
	case len(rules.List(config, "nameservers")) == 0:
		c.Required(at.Field("nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
	}
	limit := longestSearch
	if c.Release.Before(longSearches) {
		limit = formerLongestSearch
	}
	if searches := rules.Texts(config, "searches"); len(strings.Join(searches, " ")) > limit {
		c.Invalid(at.Field("searches"), searches,
			fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", limit))
	}
}

// podNamespaces checks that hostPID and shareProcessNamespace are not both set.
func podNamespaces(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostPID"] == true && m["shareProcessNamespace"] == true {
		c.Invalid(at.Field("securityContext").Field("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
}

// serviceAccountAlias synchronizes serviceAccountName and the deprecated serviceAccount.
func serviceAccountAlias(m map[string]any, _ vocabulary.Vocabulary) {
	if name := rules.Text(m, "serviceAccountName"); name != "" {
		m["serviceAccount"] = name
	} else if name := rules.Text(m, "serviceAccount"); name != "" {
		m["serviceAccountName"] = name
	}
}

// hostNetworkHostPorts defaults host ports to container ports on the host network.
func hostNetworkHostPorts(m map[string]any, _ vocabulary.Vocabulary) {
	if m["hostNetwork"] != true {
		return
	}
	for _, name := range containerLists {
		for _, container := range rules.Objects(m, name) {
			for _, port := range rules.Objects(container, "ports") {
				if port != nil && rules.Number(port, "hostPort") == 0 && port["containerPort"] != nil {
					port["hostPort"] = port["containerPort"]
				}
			}
		}
	}
}

// positiveGrace replaces a negative grace period, which would remove a pod that still runs.
func positiveGrace(m map[string]any, _ vocabulary.Vocabulary) {
	if spec := rules.Object(m, "spec"); rules.Number(spec, "terminationGracePeriodSeconds") < 0 {
		spec["terminationGracePeriodSeconds"] = int64(1)
	}
}

// hostPortsOfPod is hostNetworkHostPorts for pods only.
func hostPortsOfPod(m map[string]any, v vocabulary.Vocabulary) {
	hostNetworkHostPorts(rules.Object(m, "spec"), v)
}
