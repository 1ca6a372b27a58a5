package keywords

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/release"
)

// formats are the formats of strings that each release validates, and later those that release
// 1.36 adds. Dashes in their names do not matter.
var (
	formats = []string{
		"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
		"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime",
	}
	later = []string{"k8sshortname", "k8slongname"}
)

// Recognizes reports whether a release validates a format of values with a JSON type, which
// may be empty. Other formats are ignored, as in Kubernetes; 1.21 has none of numbers.
func Recognizes(r release.Release, kind, format string) bool {
	name := strings.ReplaceAll(format, "-", "")
	if r.Before(release.V136) {
		return slices.Contains(formats, name)
	}
	switch kind {
	case "", "string":
		return slices.Contains(formats, name) || slices.Contains(later, name)
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}
