package crd

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/tree"
)

// conversion validates spec.conversion.
func (c *check) conversion() {
	how, where := tree.Child(c.spec, "conversion"), at("conversion")
	if how == nil {
		return
	}
	config, reviews := tree.Child(how, "webhookClientConfig"), tree.Texts(how, "conversionReviewVersions")
	switch strategy := tree.Text(how, "strategy"); strategy {
	case "Webhook":
		if c.spec["preserveUnknownFields"] == true {
			c.Invalid(where.Field("strategy"), strategy, "must be None if spec.preserveUnknownFields is true")
		}
		c.clientConfig(config, where.Field("webhookClientConfig"))
		c.reviews(reviews, where.Field("conversionReviewVersions"))
		return
	case "":
		c.Required(where.Field("strategy"), "")
	case "None":
	default:
		c.NotSupported(where.Field("strategy"), strategy, "None", "Webhook")
	}
	const unused = "should not be set when strategy is not set to Webhook"
	if config != nil {
		c.Forbidden(where.Field("webhookClientConfig"), unused)
	}
	if len(reviews) > 0 {
		c.Forbidden(where.Field("conversionReviewVersions"), unused)
	}
}

// reviews validates the versions of ConversionReview that a webhook accepts.
func (c *check) reviews(versions []string, where *field.Path) {
	if len(versions) == 0 {
		c.Required(where, "")
		return
	}
	seen, supported := map[string]bool{}, false
	for i, version := range versions {
		if seen[version] {
			c.Invalid(where.Item(i), version, "duplicate version")
		} else {
			c.label(where.Item(i), version)
		}
		seen[version] = true
		supported = supported || conversion.Supports(version)
	}
	if !supported && !c.relaxed.reviews {
		c.Invalid(where, versions, "must include at least one of v1, v1beta1")
	}
}

// clientConfig validates the address of the webhook.
func (c *check) clientConfig(config map[string]any, where *field.Path) {
	if config == nil {
		c.Required(where, "required when strategy is set to Webhook")
		return
	}
	rules.WebhookAddress(&c.Errors, c.Types.Release(), config, where)
}
