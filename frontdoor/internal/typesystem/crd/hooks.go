package crd

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conversion"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
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
	address, hasURL := config["url"].(string)
	service := tree.Child(config, "service")
	switch {
	case config == nil:
		c.Required(where, "required when strategy is set to Webhook")
	case hasURL == (service != nil):
		c.Required(where, "exactly one of url or service is required")
	case hasURL:
		c.url(address, where.Field("url"))
	default:
		c.service(service, where.Field("service"))
	}
}

func (c *check) url(address string, where *field.Path) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(address)
	if err != nil {
		c.Required(where, "url must be a valid URL: "+err.Error()+form)
		return
	}
	if u.Scheme != "https" {
		c.Invalid(where, u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		c.Invalid(where, u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		c.Invalid(where, u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		c.Invalid(where, u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		c.Invalid(where, u.RawQuery, "query parameters are not permitted in the URL")
	}
}

func (c *check) service(s map[string]any, where *field.Path) {
	for _, name := range []string{"name", "namespace"} {
		if tree.Text(s, name) == "" {
			c.Required(where.Field(name), "")
		}
	}
	if port, given := s["port"]; given {
		if n := number(s, "port"); len(validation.IsValidPortNum(int(n))) > 0 {
			c.Invalid(where.Field("port"), port, "port is not valid: must be between 1 and 65535, inclusive")
		}
	}
	path := tree.Text(s, "path")
	if path == "" {
		return
	}
	for _, problem := range format.WebhookPath(path) {
		c.Invalid(where.Field("path"), path, problem)
	}
}
