// Package format holds the formats of single texts that the overlay of package
// schema may name: labels, domains, ports, schedules and the like. A format says
// what is wrong with a text and knows nothing of where it stands. It serves the
// fields of the kinds that the specification lists.
package format

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Format returns what is wrong with a text; nil when nothing is.
type Format func(value string) []string

// formats are those that the overlay may name.
var formats = map[string]Format{
	"dns-label":      validation.IsDNS1123Label,
	"dns-1035-label": validation.IsDNS1035Label,
	"dns-subdomain":  validation.IsDNS1123Subdomain,
	"dns-wildcard":   dnsName,
	"qualified-name": validation.IsQualifiedName,
	"label-key":      validation.IsQualifiedName,
	"label-value":    validation.IsValidLabelValue,
	"annotation-key": func(key string) []string { return validation.IsQualifiedName(strings.ToLower(key)) },
	"config-key":     validation.IsConfigMapKey,
	"env-name":       validation.IsEnvVarName,
	"port-name":      validation.IsValidPortName,
	"percent":        validation.IsValidPercent,
	"percent-of-all": percentOfAll,
	"path-segment":   PathSegment,
	"signer":         signer,
	"webhook-name":   webhookName,
	"dns-subdomain-or-empty": func(value string) []string {
		if value == "" {
			return nil
		}
		return validation.IsDNS1123Subdomain(value)
	},
	"certificate-request": certificateRequest,
	"ip":                  ipAddress,
	"cidr":                cidr,
	"absolute-path":       absolutePath,
	"relative-path":       relativePath,
	"path-start":          pathStart,
	"url-https":           httpsURL,
	"cron":                cronSchedule,
	"not-blank":           notBlank,
	"resource-name":       resourceName,
}

func dnsName(value string) []string {
	if strings.HasPrefix(value, "*.") {
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

// signer is a domain and a path, as in example.com/some-signer.
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
	problems := validation.IsDNS1123Subdomain(value)
	if len(strings.Split(value, ".")) < 3 {
		problems = append(problems, "should be a domain with at least three segments separated by dots")
	}
	return problems
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

func ipAddress(value string) []string {
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

func absolutePath(value string) []string {
	if !strings.HasPrefix(value, "/") {
		return []string{"must be an absolute path"}
	}
	return nil
}

func pathStart(value string) []string {
	if !strings.HasPrefix(value, "/") {
		return []string{"must start with /"}
	}
	return nil
}

// relativePath is a path that stays below where it starts.
func relativePath(value string) []string {
	if strings.HasPrefix(value, "/") {
		return []string{"must be a relative path"}
	}
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return []string{"must not contain '..'"}
		}
	}
	return nil
}

func httpsURL(value string) []string {
	u, err := url.Parse(value)
	switch {
	case err != nil:
		return []string{"must be a valid URL: " + err.Error()}
	case u.Scheme != "https" || u.Host == "":
		return []string{"must be a URL of the form https://host[:port]/path"}
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return []string{"must have no user information, query or fragment"}
	}
	return nil
}

func notBlank(value string) []string {
	if strings.TrimSpace(value) != value || value == "" {
		return []string{"must not be empty or have spaces around it"}
	}
	return nil
}

// resourceName is the name of a compute resource: a standard one, or a qualified
// one of an extension.
func resourceName(value string) []string { return validation.IsQualifiedName(value) }

// cronSchedule is five fields of a cron schedule, or a macro.
func cronSchedule(value string) []string {
	wrong := []string{"must be a cron schedule of five fields, or one of @yearly, @monthly, @weekly, @daily, @hourly, @every <duration>"}
	value = strings.TrimSpace(value)
	if zone, rest, ok := strings.Cut(value, " "); ok && (strings.HasPrefix(zone, "TZ=") || strings.HasPrefix(zone, "CRON_TZ=")) {
		value = strings.TrimSpace(rest)
	}
	switch value {
	case "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly":
		return nil
	}
	if strings.HasPrefix(value, "@every ") {
		return nil
	}
	parts := strings.Fields(value)
	if len(parts) != len(cronRanges) {
		return wrong
	}
	for i, part := range parts {
		if !cronRanges[i].accepts(part) {
			return wrong
		}
	}
	return nil
}

// cronRange is what one field of a schedule may hold.
type cronRange struct {
	low, high int
	names     string // three letters each, from low on
}

var cronRanges = [...]cronRange{{0, 59, ""}, {0, 23, ""}, {1, 31, ""}, {1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"}, {0, 7, "sunmontuewedthufrisat"}}

// accepts tells whether a field is a list of values, ranges and steps.
func (c cronRange) accepts(field string) bool {
	for part := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(part, "/")
		if n, err := strconv.Atoi(step); stepped && (err != nil || n <= 0) {
			return false
		}
		if span == "*" || span == "?" {
			continue
		}
		low, high, ranged := strings.Cut(span, "-")
		from, ok := c.value(low)
		if !ok {
			return false
		}
		if ranged {
			if to, ok := c.value(high); !ok || to < from {
				return false
			}
		}
	}
	return true
}

func (c cronRange) value(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= c.low && n <= c.high
	}
	if i := strings.Index(c.names, strings.ToLower(s)); len(s) == 3 && i >= 0 && i%3 == 0 {
		return c.low + i/3, true
	}
	return 0, false
}

// PathSegment is any text that can stand in a path.
func PathSegment(name string) []string {
	if name == "." || name == ".." {
		return []string{fmt.Sprintf("may not be %q", name)}
	}
	var problems []string
	for _, char := range []string{"/", "%"} {
		if strings.Contains(name, char) {
			problems = append(problems, fmt.Sprintf("may not contain %q", char))
		}
	}
	return problems
}

// Named returns a format by its name; no name is no format.
func Named(name string) (Format, error) {
	f, ok := formats[name]
	if !ok && name != "" {
		return nil, fmt.Errorf("there is no format %q", name)
	}
	return f, nil
}
