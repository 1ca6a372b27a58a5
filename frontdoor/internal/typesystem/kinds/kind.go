package kinds

import (
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
)

// Kind is what one file says of a resource type, in all versions. A file without a
// resource holds definitions that several kinds share, and has nothing else.
// README.md explains every key.
type Kind struct {
	// Group is the group in its short form: apps, or storage. for one of Kubernetes' own.
	Group    string `json:"group"`
	Resource string `json:"resource"`

	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
	// Names is the rule for valid names.
	Names NameRule `json:"names"`
	// Storage is the version that is stored; the most stable one by default.
	Storage string `json:"storage"`
	// StoredIn is the group that stores the objects, when it is another one.
	StoredIn *string `json:"storedIn"`
	// Selectable are the fields for field selectors.
	Selectable []Selectable `json:"selectable"`
	Columns    []Column     `json:"columns"`
	// Subresources that the document lacks: parts of the object itself that are
	// read and changed on a path of their own.
	Subresources []string `json:"subresources"`
	// Features are the features without which a subresource is not served, by its name.
	Features map[string]string `json:"features"`
	// Deprecated versions.
	Deprecated map[string]Deprecation `json:"deprecated"`

	// Behavior on writes: its keys stand beside the others.
	Behavior

	// Definitions are defaults and validation by the short names of definitions
	// (apps.v1.Deployment). Several names, separated by spaces, share their rules.
	Definitions map[string]*Rules `json:"definitions"`
}

// Selectable is a field that field selectors may name.
type Selectable struct {
	Name string `json:"name"` // as in spec.nodeName
	// At is the path in the stored version; empty when it is the name.
	At string `json:"at"`
	// Default is what an absent value counts as.
	Default string `json:"default"`
}

// NameRule says which names of objects are valid.
type NameRule string

const (
	NameSubdomain   NameRule = "subdomain"    // RFC 1123 subdomain, the default
	NameLabel       NameRule = "label"        // RFC 1123 label
	NameLabel1035   NameRule = "label1035"    // RFC 1035 label (services)
	NamePathSegment NameRule = "path-segment" // anything but . .. / % (roles and bindings)
)

// Format returns the format of names that follow the rule.
func (r NameRule) Format() format.Format {
	switch r {
	case NameLabel:
		return validation.IsDNS1123Label
	case NameLabel1035:
		return validation.IsDNS1035Label
	case NamePathSegment:
		return format.PathSegment
	}
	return validation.IsDNS1123Subdomain
}

// Deprecation says when a version is removed and what replaces it.
type Deprecation struct {
	Since       string `json:"since"`       // release, as in 1.19
	Removed     string `json:"removed"`     // release; empty when not announced
	Replacement string `json:"replacement"` // group/version and kind; may be empty
	// Warning is the text for clients that a CustomResourceDefinition gives.
	Warning string `json:"-"`
}
