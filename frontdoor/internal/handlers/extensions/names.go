package extensions

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxSegment bounds a segment of a path, as a name of an object is bounded.
	maxSegment = 253
	// maxParts bounds the segments of the name of a resource, which has at most a subresource.
	maxParts = 2
	// maxNames bounds the short names, categories and verbs of one resource.
	maxNames = 64
)

// segment are names that are one segment of a path for every client and server, however it writes or
// reads the path. Those of custom metrics have colons, dots and underscores.
var segment = regexp.MustCompile(`^[A-Za-z0-9_:.-]+$`)

// verb are names of verbs; some servers list all of them as a wildcard.
var verb = regexp.MustCompile(`^([a-zA-Z:-]+|\*)$`)

// hash are the hashes of storage versions, in base64.
var hash = regexp.MustCompile(`^[A-Za-z0-9+/=_-]{0,64}$`)

func isSegment(name string) bool {
	return len(name) <= maxSegment && name != "." && name != ".." && segment.MatchString(name)
}

// isLabel reports whether a name is a DNS label, whatever its case.
func isLabel(name string) bool {
	return len(validation.IsDNS1035Label(strings.ToLower(name))) == 0
}

// safe returns the resources of a document whose names clients can make paths of, and how many it
// leaves out. Clients build paths of these names, and the suite's own workers among them delete what
// is there, so that a name must not lead to another resource. Of other names of a resource, the unsafe
// ones are left out.
func safe(listed []metav1.APIResource) (kept []metav1.APIResource, refused int) {
	for _, r := range listed {
		parts := strings.Split(r.Name, "/")
		if len(parts) > maxParts || slices.ContainsFunc(parts, func(part string) bool { return !isSegment(part) }) || !isLabel(r.Kind) ||
			r.Group != "" && len(validation.IsDNS1123Subdomain(r.Group)) > 0 || r.Version != "" && !isLabel(r.Version) {
			refused++
			continue
		}
		if r.SingularName != "" && !isSegment(r.SingularName) {
			r.SingularName = ""
		}
		if !hash.MatchString(r.StorageVersionHash) {
			r.StorageVersionHash = ""
		}
		r.ShortNames, r.Categories, r.Verbs = only(r.ShortNames, isSegment), only(r.Categories, isSegment), only(r.Verbs, verb.MatchString)
		kept = append(kept, r)
	}
	return kept, refused
}

// only returns the first maxNames names that are valid; nil for none.
func only(names []string, valid func(string) bool) (kept []string) {
	for _, name := range names {
		if len(kept) < maxNames && len(name) <= maxSegment && valid(name) {
			kept = append(kept, name)
		}
	}
	return kept
}
