package pods

import (
	"maps"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

func podAnnotations(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.Object(m, "metadata", "annotations")) > 0 {
		running(c, m, at.Field("metadata").Field("annotations"))
	}
}

func templateAnnotations(c *rules.Check, m, _ map[string]any, at *field.Path) {
	if len(rules.Object(m, "metadata", "annotations")) > 0 {
		running(c, m, at.Field("annotations"))
	}
}

// running validates the annotations that affect how a pod is run.
func running(c *rules.Check, m map[string]any, at *field.Path) {
	annotations, spec := rules.Object(m, "metadata", "annotations"), rules.Object(m, "spec")
	mirror := c.Vocabulary.Qualified("", "config.mirror")
	if value, ok := annotations[mirror]; ok && rules.Text(spec, "nodeName") == "" {
		c.Invalid(at.Entry(mirror), value, "must set spec.nodeName if mirror pod annotation is set")
	}
	armour := c.Vocabulary.Qualified("container.apparmor.security.beta", "")
	ofPod, ofContainer := c.Vocabulary.Qualified("seccomp.security.alpha", "pod"), c.Vocabulary.Qualified("container.seccomp.security.alpha", "")
	var containers map[string]bool
	for key := range annotations {
		value := rules.Text(annotations, key)
		switch name, armoured := strings.CutPrefix(key, armour); {
		case armoured:
			if containers == nil {
				containers = containerNames(spec)
			}
			if !containers[name] {
				c.Invalid(at.Entry(key), name, "container not found")
			}
			appArmor(c, value, at.Entry(key))
		case key == ofPod, strings.HasPrefix(key, ofContainer):
			seccomp(c, value, at.Field(key))
		}
	}
}

// containerNames returns the names of all containers of a pod.
func containerNames(spec map[string]any) map[string]bool {
	names := map[string]bool{}
	for _, list := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
		maps.Copy(names, valuesOf(spec, list, "name"))
	}
	return names
}

func appArmor(c *rules.Check, profile string, at *field.Path) {
	if profile != "" && profile != "runtime/default" && profile != "unconfined" && !strings.HasPrefix(profile, "localhost/") {
		c.Invalid(at, profile, "invalid AppArmor profile name: "+field.Display(profile))
	}
}

func seccomp(c *rules.Check, profile string, at *field.Path) {
	switch path, local := strings.CutPrefix(profile, "localhost/"); {
	case profile == "runtime/default", profile == "docker/default", profile == "unconfined":
	case !local:
		c.Invalid(at, profile, "must be a valid seccomp profile")
	case strings.HasPrefix(path, "/"):
		c.Invalid(at, path, "must be a relative path")
	}
}
