package profiles

import (
	"strconv"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podspec"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

func podAnnotations(c *rules.Check, m, old map[string]any, at *field.Path) {
	where := at.Field("metadata").Field("annotations")
	if old != nil {
		keptAnnotations(c, m, old, where)
	}
	if c.Subresource != "status" && len(rules.Object(m, "metadata", "annotations")) > 0 {
		running(c, m, where)
		deletionCost(c, m, old, where)
		if old == nil {
			matching(c, m, at.Field("spec"))
		}
	}
}

func templateAnnotations(c *rules.Check, m, old map[string]any, at *field.Path) {
	if len(rules.Object(m, "metadata", "annotations")) > 0 {
		running(c, m, at.Field("annotations"))
		deletionCost(c, m, old, at.Field("annotations"))
	}
}

// running validates the annotations that affect how a pod is run.
func running(c *rules.Check, m map[string]any, at *field.Path) {
	annotations, spec := rules.Object(m, "metadata", "annotations"), rules.Object(m, "spec")
	mirror := c.Vocabulary.Qualified("", "config.mirror")
	if value, ok := annotations[mirror]; ok && rules.Text(spec, "nodeName") == "" {
		c.Invalid(at.Entry(mirror), value, "must set spec.nodeName if mirror pod annotation is set")
	}
	armour := armourPrefix(c.Vocabulary)
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
	for _, container := range podspec.Containers(spec) {
		names[rules.Text(container, "name")] = true
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

// armourPrefix begins the annotations with the AppArmor profiles of containers.
func armourPrefix(v vocabulary.Vocabulary) string {
	return v.Qualified("container.apparmor.security.beta", "")
}

// keptAnnotations checks that an update keeps the annotations that are only read when a pod starts.
func keptAnnotations(c *rules.Check, m, old map[string]any, at *field.Path) {
	now, before := rules.Object(m, "metadata", "annotations"), rules.Object(old, "metadata", "annotations")
	mirror, armour := c.Vocabulary.Qualified("", "config.mirror"), armourPrefix(c.Vocabulary)
	check := func(key, what string) {
		switch {
		case strings.HasPrefix(key, armour):
			c.Forbidden(at.Entry(key), "may not "+what+" AppArmor annotations")
		case key == mirror:
			c.Forbidden(at.Entry(key), "may not "+what+" mirror pod annotation")
		}
	}
	for key, value := range before {
		if now[key] != value {
			check(key, "remove or update")
		}
	}
	for key := range now {
		if _, had := before[key]; !had {
			check(key, "add")
		}
	}
}

// costs is the first release that validates the costs of deletions by default.
var costs, _ = release.Of("1.22")

// deletionCost checks what the deletion of a pod costs. An update keeps an invalid cost.
func deletionCost(c *rules.Check, m, old map[string]any, at *field.Path) {
	if c.Release.Before(costs) && !c.On("PodDeletionCost") {
		return
	}
	key := c.Vocabulary.Qualified("controller", "pod-deletion-cost")
	cost, given := rules.Object(m, "metadata", "annotations")[key].(string)
	before, had := rules.Object(old, "metadata", "annotations")[key].(string)
	if given && !isCost(cost) && !(had && !isCost(before)) {
		c.Invalid(at.Entry(key), cost, "must be a 32bit integer")
	}
}

func isCost(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	_, err := strconv.ParseInt(text, 10, 32)
	return err == nil && text[0] != '+' && (text == "0" || len(digits) < len(text) || digits[0] != '0')
}
