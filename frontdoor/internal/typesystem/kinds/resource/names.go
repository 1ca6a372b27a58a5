package resource

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
)

// The limits on names in bytes.
const (
	longestPool      = 253
	longestAttribute = 32 // without its domain
)

// driverName checks the name of a driver.
func driverName(c *rules.Check, name string, at *field.Path) {
	if name == "" {
		c.Required(at, "")
		return
	}
	if len(name) > validation.DNS1123LabelMaxLength {
		c.TooLong(at, validation.DNS1123LabelMaxLength)
	}
	for _, problem := range validation.IsDNS1123Subdomain(strings.ToLower(name)) {
		c.Invalid(at, name, problem)
	}
}

// poolName checks the name of a pool: a path of subdomains. Errors show the part.
func poolName(c *rules.Check, name string, at *field.Path) {
	if name == "" {
		c.Required(at, "")
		return
	}
	if len(name) > longestPool {
		c.TooLong(at, longestPool)
	}
	for part := range strings.SplitSeq(name, "/") {
		for _, problem := range validation.IsDNS1123Subdomain(part) {
			c.Invalid(at, part, problem)
		}
	}
}

// attributeName checks the name of an attribute or capacity, which may have a domain. Errors show
// the part. As in Kubernetes, a name with several slashes is valid.
func attributeName(c *rules.Check, name string, at *field.Path) {
	parts := strings.Split(name, "/")
	switch domain := parts[0]; {
	case len(parts) == 1:
		identifier(c, name, at)
		return
	case len(parts) > 2:
		return
	case domain == "":
		c.Invalid(at, "", "the domain must not be empty")
	default:
		driverName(c, domain, at)
	}
	if parts[1] == "" {
		c.Invalid(at, "", "the name must not be empty")
	} else {
		identifier(c, parts[1], at)
	}
}

// fullAttributeName checks the name of an attribute with its domain.
func fullAttributeName(c *rules.Check, name string, at *field.Path) {
	attributeName(c, name, at)
	if !strings.Contains(name, "/") {
		c.Invalid(at, name, "a fully qualified name must be a domain and a name separated by a slash")
	}
}

func identifier(c *rules.Check, name string, at *field.Path) {
	if len(name) > longestAttribute {
		c.TooLong(at, longestAttribute)
	}
	for _, problem := range content.IsCIdentifier(name) {
		c.Invalid(at, name, problem)
	}
}
