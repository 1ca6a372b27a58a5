package pods

import (
	"fmt"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/vocabulary"
)

// containerLists are the fields of a pod's spec that hold containers which have all
// of a container's fields.
var containerLists = [...]string{"initContainers", "containers"}

// newPod: debugging containers come later, and in their own way.
func newPod(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old == nil && len(rules.List(rules.Object(m, "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(at.Field("spec").Field("ephemeralContainers"), "cannot be set on create")
	}
}

// templateContainers: nobody debugs what does not run.
func templateContainers(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.List(rules.Object(m, "spec"), "ephemeralContainers")) > 0 {
		c.Forbidden(at.Field("spec").Field("ephemeralContainers"), "ephemeral containers not allowed in pod template")
	}
}

// podImages: a template may hold a blank one for somebody to fill in, a pod may not.
func podImages(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, list := range containerLists {
		for i, container := range rules.Objects(rules.Object(m, "spec"), list) {
			if image := rules.Text(container, "image"); strings.TrimSpace(image) != image {
				c.Invalid(at.Field("spec").Field(list).Item(i).Field("image"), image, "must not have leading or trailing whitespace")
			}
		}
	}
}

// longestSearch is how much of a search list resolvers read.
const longestSearch = 256

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
	if searches := rules.Texts(config, "searches"); len(strings.Join(searches, " ")) > longestSearch {
		c.Invalid(at.Field("searches"), searches,
			fmt.Sprintf("must not have more than %d characters (including spaces) in the search list", longestSearch))
	}
}

// podNamespaces: a pod cannot share the host's processes and have its own.
func podNamespaces(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if m["hostPID"] == true && m["shareProcessNamespace"] == true {
		c.Invalid(at.Field("securityContext").Field("shareProcessNamespace"), true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
}

// serviceAccountAlias keeps the field's older name in step.
func serviceAccountAlias(m map[string]any, _ vocabulary.Vocabulary) {
	if name := rules.Text(m, "serviceAccountName"); name != "" {
		m["serviceAccount"] = name
	} else if name := rules.Text(m, "serviceAccount"); name != "" {
		m["serviceAccountName"] = name
	}
}

// hostNetworkHostPorts: on the host's network a container's port is the host's.
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
