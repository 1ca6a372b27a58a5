package admissionregistration

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// reviewVersions checks that a webhook accepts a version of AdmissionReview that the
// service sends.
func reviewVersions(c *rules.Check, m, _ map[string]any, at *field.Path) {
	versions := rules.Texts(m, "admissionReviewVersions")
	if len(versions) > 0 && !slices.Contains(versions, "v1") && !slices.Contains(versions, "v1beta1") {
		c.Invalid(at.Field("admissionReviewVersions"), versions, "must include at least one of v1, v1beta1")
	}
}

// webhookAddress checks that a webhook has either a valid URL or a valid Service.
func webhookAddress(c *rules.Check, m, _ map[string]any, at *field.Path) {
	rules.WebhookAddress(&c.Errors, c.Release, m, at)
}

// reviewVersionsOnce checks that versions of AdmissionReview are not repeated.
func reviewVersionsOnce(c *rules.Check, m, _ map[string]any, at *field.Path) {
	versions := rules.Texts(m, "admissionReviewVersions")
	seen := make(map[string]bool, len(versions))
	for i, version := range versions {
		if seen[version] {
			c.Invalid(at.Field("admissionReviewVersions").Item(i), version, "duplicate version")
		}
		seen[version] = true
	}
}

// wildcardAlone checks that "*" is the only item of its list, and that apiVersions and
// resources have no empty items.
func wildcardAlone(c *rules.Check, m, _ map[string]any, at *field.Path) {
	for _, name := range [...]string{"operations", "apiGroups", "apiVersions"} {
		if values := rules.Texts(m, name); len(values) > 1 && slices.Contains(values, "*") {
			c.Invalid(at.Field(name), values, "if '*' is present, must not specify other "+plain[name])
		}
	}
	for _, name := range [...]string{"apiVersions", "resources"} {
		for i, value := range rules.Texts(m, name) {
			if value == "" {
				c.Required(at.Field(name).Item(i), "")
			}
		}
	}
}

// plain maps fields to their names in messages.
var plain = map[string]string{"operations": "operations", "apiGroups": "API groups", "apiVersions": "API versions"}

// resourceWildcards checks that the wildcards among resources and subresources do not overlap
// other items.
func resourceWildcards(c *rules.Check, m, _ map[string]any, at *field.Path) {
	resources, at := rules.Texts(m, "resources"), at.Field("resources")
	names := make(map[string]bool, len(resources))
	for _, name := range resources {
		names[name] = true
	}
	has := func(name string) bool { return names[name] }
	if has("*/*") && len(resources) > 1 {
		c.Invalid(at, resources, "if '*/*' is present, must not specify other resources")
	}
	for i, name := range resources {
		of, sub, nested := strings.Cut(name, "/")
		switch {
		case !nested && name != "*" && has("*"):
			c.Invalid(at, resources, "if '*' is present, must not specify other resources without subresources")
			return
		case nested && sub != "*" && has(of+"/*"):
			c.Invalid(at.Item(i), name, "if '"+of+"/*' is present, must not specify "+name)
		case nested && of != "*" && has("*/"+sub):
			c.Invalid(at.Item(i), name, "if '*/"+sub+"' is present, must not specify "+name)
		}
	}
}
