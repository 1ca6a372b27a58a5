package format

import (
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
)

// longestAttribute is the limit on the name of an attribute without its domain.
const longestAttribute = 32

// attribute is the name of an attribute or capacity of a device, with or without a domain.
func attribute(value string) (problems []string) {
	domain, name, qualified := strings.Cut(value, "/")
	if !qualified {
		return identifier(value)
	}
	switch {
	case domain == "":
		problems = append(problems, "the domain must not be empty")
	case len(domain) > validation.DNS1123LabelMaxLength:
		problems = append(problems, validation.MaxLenError(validation.DNS1123LabelMaxLength))
	default:
		problems = validation.IsDNS1123Subdomain(strings.ToLower(domain))
	}
	if name == "" {
		return append(problems, "the name must not be empty")
	}
	return append(problems, identifier(name)...)
}

// fullAttribute is the name of an attribute with its domain.
func fullAttribute(value string) []string {
	problems := attribute(value)
	if !strings.Contains(value, "/") {
		problems = append(problems, "a fully qualified name must be a domain and a name separated by a slash")
	}
	return problems
}

func identifier(name string) []string {
	if len(name) > longestAttribute {
		return []string{validation.MaxLenError(longestAttribute)}
	}
	return content.IsCIdentifier(name)
}

func semanticVersion(value string) []string {
	if _, err := semver.Parse(value); err != nil {
		return []string{"must be a string compatible with semver.org spec 2.0.0"}
	}
	return nil
}

// IsUUID reports whether a value is a UUID in its normal form.
func IsUUID(value string) bool {
	for i, char := range []byte(value) {
		switch digit := char >= '0' && char <= '9' || char >= 'a' && char <= 'f'; i {
		case 8, 13, 18, 23:
			if char != '-' {
				return false
			}
		default:
			if !digit {
				return false
			}
		}
	}
	return len(value) == len("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}
