package keywords

import (
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/release"
)

// formats are the formats of strings that are validated, and later those that release 1.36
// adds. Dashes in their names do not matter.
var (
	formats = []string{
		"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
		"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime",
	}
	later = []string{"k8sshortname", "k8slongname"}
)

// Recognizes reports whether a release validates a format of values with a JSON type, which
// may be empty. Other formats are ignored, as in Kubernetes.
func Recognizes(r release.Release, kind, format string) bool {
	switch kind {
	case "", "string":
		format = strings.ReplaceAll(format, "-", "")
		return slices.Contains(formats, format) || !r.Before(release.V136) && slices.Contains(later, format)
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}
