// Package podwarnings warns of settings of pods that have no effect, or another one than it seems.
// It serves "Other signals" of the specification.
package podwarnings

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/volumes"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// Functions are the functions that the file of pods refers to.
var Functions = kinds.Functions{
	Checks: map[string]rules.CheckFunc{
		"podNameWarning": podNameWarning,
		"podWarnings":    podWarnings,
	},
}

// podNameWarning warns of names of new pods that are no hostnames.
func podNameWarning(c *rules.Check, m, old map[string]any, _ *field.Path) {
	if problems := validation.IsDNS1123Label(rules.Text(rules.Object(m, "metadata"), "name")); old == nil && len(problems) > 0 {
		c.Warn(fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", problems))
	}
}

// podWarnings warns of settings of new pods, and of new and changed templates, that have no
// effect. Updates of pods are frequent, and have no warnings.
func podWarnings(c *rules.Check, m, old map[string]any, at *field.Path) {
	if old != nil && (at.String() == "spec" || at.String() != "template.spec" && rules.Same(m, old)) {
		return
	}
	volumeWarnings(c, m, at.Field("volumes"))
	selectorWarnings(c, m, at)
	twice(c, rules.Objects(m, "hostAliases"), "ip", at.Field("hostAliases"))
	secrets := at.Field("imagePullSecrets")
	twice(c, rules.Objects(m, "imagePullSecrets"), "name", secrets)
	for i, secret := range rules.Objects(m, "imagePullSecrets") {
		if rules.Text(secret, "name") == "" {
			c.Warn(secrets.Item(i).Field("name").String() + `: invalid empty name ""`)
		}
	}
	containerWarnings(c, m, at)
	if rules.Number(m, "terminationGracePeriodSeconds") < 0 {
		c.Warn(at.Field("terminationGracePeriodSeconds").String() + ": must be >= 0; negative values are invalid and will be treated as 1")
	}
}

func volumeWarnings(c *rules.Check, m map[string]any, at *field.Path) {
	for i, volume := range rules.Objects(m, "volumes") {
		volumes.WarnOfSource(c, volume, at.Item(i))
		for _, source := range rules.Objects(rules.Object(volume, "projected"), "sources") {
			if len(source) == 0 {
				c.Warn(fmt.Sprintf("volume %q (Projected) has no sources provided", rules.Text(volume, "name")))
			}
		}
	}
}

// selectorWarnings warns of terms that select no pod.
func selectorWarnings(c *rules.Check, m map[string]any, at *field.Path) {
	check := func(term map[string]any, at *field.Path) {
		if term["labelSelector"] == nil {
			c.Warn(at.Field("labelSelector").String() + ": a null labelSelector results in matching no pod")
		}
	}
	for i, constraint := range rules.Objects(m, "topologySpreadConstraints") {
		check(constraint, at.Field("topologySpreadConstraints").Item(i))
	}
	for _, kind := range [...]string{"podAffinity", "podAntiAffinity"} {
		terms, at := rules.Object(m, "affinity", kind), at.Field("affinity").Field(kind)
		const required, preferred = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
		for i, term := range rules.Objects(terms, required) {
			check(term, at.Field(required).Item(i))
		}
		for i, term := range rules.Objects(terms, preferred) {
			check(rules.Object(term, "podAffinityTerm"), at.Field(preferred).Item(i).Field("podAffinityTerm"))
		}
	}
}

// twice warns of items of a list that have the same name.
func twice(c *rules.Check, items []map[string]any, by string, at *field.Path) {
	seen := map[string]bool{}
	for i, item := range items {
		name := rules.Text(item, by)
		if seen[name] {
			c.Warn(fmt.Sprintf("%s: duplicate %s %q", at.Item(i).Field(by), by, name))
		}
		seen[name] = true
	}
}
