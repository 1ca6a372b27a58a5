// Package format holds the string formats that files of package kinds can refer to: labels,
// domains, ports, schedules and the like. A format validates a string without knowing its
// field. It serves the fields of the kinds that the specification lists.
package format

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	amount "github.com/portico-platform/portico/services/quantity"
)

// Format returns the errors of a string; nil if it is valid.
type Format func(value string) []string

// formats are the formats by name.
var formats = map[string]Format{
	"dns-label":           usually(validation.IsDNS1123Label),
	"dns-1035-label":      validation.IsDNS1035Label,
	"dns-subdomain":       usually(validation.IsDNS1123Subdomain),
	"dns-wildcard":        DNSName,
	"qualified-name":      usually(validation.IsQualifiedName),
	"label-key":           usually(validation.IsQualifiedName),
	"label-value":         usually(validation.IsValidLabelValue),
	"annotation-key":      usually(AnnotationKey),
	"semantic-version":    semanticVersion,
	"config-key":          usually(validation.IsConfigMapKey),
	"env-name":            envName,
	"port-name":           validation.IsValidPortName,
	"percent":             validation.IsValidPercent,
	"percent-of-all":      percentOfAll,
	"path-segment":        PathSegment,
	"signer":              signer,
	"webhook-name":        webhookName,
	"certificate-request": certificateRequest,
	"ip":                  IP,
	"cidr":                cidr,
	"absolute-path":       absolutePath,
	"relative-path":       relativePath,
	"cron":                cronSchedule,
	"dns-search":          func(value string) []string { return validation.IsDNS1123Subdomain(strings.TrimSuffix(value, ".")) },
	"relaxed-dns-search":  relaxedSearch,
	"printable-env-name":  validation.IsRelaxedEnvVarName,
	"domain-path":         domainPath,
	"domain-prefixed":     domainPrefixed,
	"http-header":         validation.IsHTTPHeaderName,
	"iscsi-name":          iscsiName,
	"no-backsteps":        noBacksteps,
	"not-negative":        func(value string) []string { return quantity(value, 0, "must be greater than or equal to 0") },
	"plain-relative-path": plainRelativePath,
	"csi-driver":          func(value string) []string { return validation.IsDNS1123Subdomain(strings.ToLower(value)) },
	"positive":            func(value string) []string { return quantity(value, 1, "must be positive") },
	"sysctl":              sysctl,
	"resource-name":       resourceName,
}

// AnnotationKey is a qualified name whose prefix may have upper case.
func AnnotationKey(key string) []string { return validation.IsQualifiedName(strings.ToLower(key)) }

// DNSName is a domain, or any name below one (*.example.com).
func DNSName(value string) []string {
	if strings.Contains(value, "*") {
		return validation.IsWildcardDNS1123Subdomain(value)
	}
	return validation.IsDNS1123Subdomain(value)
}

// percentOfAll is a percentage of at most 100.
func percentOfAll(value string) []string {
	if problems := validation.IsValidPercent(value); len(problems) > 0 {
		return problems
	}
	if n, err := strconv.Atoi(strings.TrimSuffix(value, "%")); err != nil || n > 100 {
		return []string{"must not be greater than 100%"}
	}
	return nil
}

// relaxedSearch is a domain to search, which may have underscores, or the root.
func relaxedSearch(value string) []string {
	if value == "." {
		return nil
	}
	return validation.IsDNS1123SubdomainWithUnderscore(strings.TrimSuffix(value, "."))
}

// signer is a domain and a path, for example example.com/some-signer.
func signer(value string) []string {
	domain, path, ok := strings.Cut(value, "/")
	if !ok || path == "" {
		return []string{"must be a fully qualified domain and path of the form 'example.com/signer-name'"}
	}
	problems := validation.IsDNS1123Subdomain(domain)
	for segment := range strings.SplitSeq(path, ".") {
		problems = append(problems, validation.IsDNS1123Label(segment)...)
	}
	if !strings.Contains(domain, ".") {
		problems = append(problems, "should be a domain with at least two segments separated by dots")
	}
	return problems
}

// webhookName is a domain of at least three segments.
func webhookName(value string) []string {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		return problems
	}
	if len(strings.Split(value, ".")) < 3 {
		return []string{"should be a domain with at least three segments separated by dots"}
	}
	return nil
}

// certificateRequest is one PEM block with a PKCS#10 request, in base64.
func certificateRequest(value string) []string {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return []string{"must be base64"}
	}
	block, _ := pem.Decode(decoded)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return []string{"PEM block type must be CERTIFICATE REQUEST"}
	}
	if _, err := x509.ParseCertificateRequest(block.Bytes); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// IP is an IP address of either family.
func IP(value string) []string {
	if _, err := netip.ParseAddr(value); err != nil {
		return []string{"must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"}
	}
	return nil
}

func cidr(value string) []string {
	if _, err := netip.ParsePrefix(value); err != nil {
		return []string{"must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"}
	}
	return nil
}

// CanonicalCIDR is a range of addresses without bits after its prefix.
func CanonicalCIDR(value string) []string {
	prefix, err := netip.ParsePrefix(value)
	switch {
	case err != nil:
		return cidr(value)
	case prefix.Masked() != prefix:
		return []string{"must not have bits set beyond the prefix length"}
	case prefix.String() != value:
		return []string{`must be in canonical form ("` + prefix.String() + `")`}
	}
	return nil
}

func absolutePath(value string) []string {
	if !strings.HasPrefix(value, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

// relativePath is a path without leading slash and "..".
func relativePath(value string) []string {
	if strings.HasPrefix(value, "/") {
		return []string{"must be a relative path"}
	}
	return noBacksteps(value)
}

// plainRelativePath is a relative path that does not start with two dots, even as part of a
// name.
func plainRelativePath(value string) []string {
	if problems := relativePath(value); len(problems) > 0 || !strings.HasPrefix(value, "..") {
		return problems
	}
	return []string{"must not start with '..'"}
}

// resourceName is the name of a compute resource, qualified or not.
func resourceName(value string) []string { return validation.IsQualifiedName(value) }

// quantity is a quantity whose sign is at least least.
func quantity(value string, least int, why string) []string {
	if q, err := amount.Parse(value); err == nil && q.Sign() < least {
		return []string{why}
	}
	return nil
}

// PathSegment is a string that can be a segment of a path.
func PathSegment(name string) []string {
	if name == "." || name == ".." {
		return []string{fmt.Sprintf("may not be '%s'", name)}
	}
	var problems []string
	for _, char := range []string{"/", "%"} {
		if strings.Contains(name, char) {
			problems = append(problems, fmt.Sprintf("may not contain '%s'", char))
		}
	}
	return problems
}

// Named returns a format by its name; nil for "".
func Named(name string) (Format, error) {
	f, ok := formats[name]
	if !ok && name != "" {
		return nil, fmt.Errorf("unknown format %q", name)
	}
	return f, nil
}
