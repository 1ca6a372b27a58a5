package format

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
)

func semanticVersion(value string) []string {
	if _, err := semver.Parse(value); err != nil {
		return []string{"must be a string compatible with semver.org spec 2.0.0"}
	}
	return nil
}

// IsUUID reports whether a value is a UUID in its canonical form.
func IsUUID(value string) bool {
	id, err := uuid.Parse(value)
	return err == nil && id.String() == value
}

// domainPath is a domain and a path, for example example.com/controller.
func domainPath(value string) []string {
	domain, path, ok := strings.Cut(value, "/")
	if !ok || path == "" {
		return []string{"must be a domain-prefixed path (such as \"acme.io/foo\")"}
	}
	problems := validation.IsDNS1123Subdomain(domain)
	if !pathPattern.MatchString(path) {
		problems = append(problems, "Invalid path (regex used for validation is '"+pathPattern.String()+"')")
	}
	return problems
}

// domainPrefixed is a qualified name that has a domain.
func domainPrefixed(value string) []string {
	if !strings.Contains(value, "/") {
		return []string{"must be a domain-prefixed key (such as \"acme.io/foo\")"}
	}
	return AnnotationKey(value)
}

// Patterns of names that package validation does not cover.
var (
	pathPattern   = regexp.MustCompile(`^[A-Za-z0-9/\-._~%!$&'()*+,;=:]+$`)
	sysctlPattern = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)
	iscsiPatterns = regexp.MustCompile(`^(iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$|eui\.[[:alnum:]]{16}$|naa\.[[:alnum:]]{32}$)`)
)

// WebhookPath is a URL path whose segments are DNS subdomains.
func WebhookPath(value string) (problems []string) {
	switch {
	case value == "" || value == "/":
		return nil
	case value[0] != '/':
		problems = append(problems, "must start with a '/'")
	}
	steps := value[1:] // without the first character, whatever it is, as in kube-apiserver
	for i, step := range strings.Split(strings.TrimSuffix(steps, "/"), "/") {
		if step == "" {
			problems = append(problems, fmt.Sprintf("segment[%d] may not be empty", i))
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(step) {
			problems = append(problems, fmt.Sprintf("segment[%d]: %s", i, problem))
		}
	}
	return problems
}

const longestSysctl = 253

func sysctl(value string) []string {
	if len(value) > longestSysctl || !sysctlPattern.MatchString(value) {
		return []string{fmt.Sprintf("must have at most %d characters and match regex %s", longestSysctl, sysctlPattern)}
	}
	return nil
}

func iscsiName(value string) []string {
	switch {
	case !strings.HasPrefix(value, "iqn") && !strings.HasPrefix(value, "eui") && !strings.HasPrefix(value, "naa"):
		return []string{"must be valid format starting with iqn, eui, or naa"}
	case !iscsiPatterns.MatchString(value):
		return []string{"must be valid format"}
	}
	return nil
}

// noBacksteps is a path without "..".
func noBacksteps(value string) []string {
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return []string{"must not contain '..'"}
		}
	}
	return nil
}

// CanonicalIP is an IP address in the form that all its spellings have in common.
func CanonicalIP(value string) []string {
	ip, err := netip.ParseAddr(value)
	switch {
	case err != nil || ip.Zone() != "":
		return []string{"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"}
	case ip.Unmap().String() != value:
		return []string{`must be in canonical form ("` + ip.Unmap().String() + `")`}
	}
	return nil
}
