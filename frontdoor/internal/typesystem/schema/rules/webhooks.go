package rules

import (
	"net/url"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/services/release"
)

// WebhookAddress validates a client configuration: it has either a URL or a Service. If it has
// both or none, neither is looked at.
func WebhookAddress(errs *field.Errors, r release.Release, config map[string]any, at *field.Path) {
	address, hasURL := config["url"].(string)
	service := Object(config, "service")
	switch {
	case hasURL == (service != nil):
		errs.Required(at, "exactly one of url or service is required")
	case hasURL:
		webhookURL(errs, address, at.Field("url"))
	default:
		webhookService(errs, r, service, at.Field("service"))
	}
}

func webhookURL(errs *field.Errors, address string, at *field.Path) {
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(address)
	if err != nil {
		errs.Required(at, "url must be a valid URL: "+err.Error()+form)
		return
	}
	if u.Scheme != "https" {
		errs.Invalid(at, u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		errs.Invalid(at, u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		errs.Invalid(at, u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		errs.Invalid(at, u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		errs.Invalid(at, u.RawQuery, "query parameters are not permitted in the URL")
	}
}

func webhookService(errs *field.Errors, r release.Release, service map[string]any, at *field.Path) {
	for _, name := range [...]string{"name", "namespace"} {
		switch {
		case Text(service, name) != "":
		case r.Before(release.V136):
			errs.Required(at.Field(name), "service "+name+" is required")
		default:
			errs.Required(at.Field(name), "")
		}
	}
	if port, given := service["port"].(int64); given {
		for _, problem := range validation.IsValidPortNum(int(port)) {
			errs.Invalid(at.Field("port"), port, "port is not valid: "+problem)
		}
	}
	path := Text(service, "path")
	if path == "" {
		return
	}
	for _, problem := range format.WebhookPath(path) {
		errs.Invalid(at.Field("path"), path, problem)
	}
}
