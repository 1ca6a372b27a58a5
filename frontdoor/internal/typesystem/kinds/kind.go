package kinds

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/services/release"
)

// Kind is the content of one file: a resource type, in all versions. A file without a
// resource only has definitions that several kinds share. README.md explains every key.
type Kind struct {
	// Group is the group in its short form: apps, or storage. with a dot for a group of
	// Kubernetes itself.
	Group    string `json:"group"`
	Resource string `json:"resource"`

	// Introduced and Removed are the first release with the kind and the first without it; ""
	// for a kind that all releases have.
	Introduced string `json:"introduced"`
	Removed    string `json:"removed"`

	// Feature is the feature gate without which the kind is not served; "" for none.
	Feature string `json:"feature"`

	Singular   string   `json:"singular"`
	ShortNames []string `json:"shortNames"`
	Categories []string `json:"categories"`
	// Names is the rule for valid names.
	Names NameRule `json:"names"`
	// Storage is the version that is stored; the most stable one by default.
	Storage string `json:"storage"`
	// StoredIn is the group that stores the objects, if it is another one.
	StoredIn *string `json:"storedIn"`
	// Selectable are the fields that field selectors support.
	Selectable []Selectable `json:"selectable"`
	Columns    []Column     `json:"columns"`
	// Subresources that the document lacks: the whole object at a path of its own.
	Subresources []string `json:"subresources"`
	// Features are the features without which a subresource is not served, by its name.
	Features map[string]string `json:"features"`
	// Deprecated versions.
	Deprecated map[string]Deprecation `json:"deprecated"`
	// Conversions of the versions whose fields differ from those of the hub version.
	Conversions map[string]*Conversion `json:"conversions"`

	// Changes of the kind by the release that makes them.
	Changes map[string]*Change `json:"changes"`

	// Behavior on writes; its keys are inlined.
	Behavior

	// Definitions are defaults and validation rules by the short names of definitions
	// (apps.v1.Deployment). Several names, separated by spaces, share their rules.
	Definitions map[string]*Rules `json:"definitions"`
}

// Change is what a release changes about the behavior of a kind.
type Change struct {
	Generation Generation `json:"generation"`
	Names      NameRule   `json:"names"`
	// CreateOnUpdate is that of Behavior.
	CreateOnUpdate bool `json:"createOnUpdate"`
	// SpecUnowned is that of Behavior.
	SpecUnowned bool `json:"specUnowned"`
}

// NamesIn returns the rule for names in a release; "" for the usual one.
func (k *Kind) NamesIn(r release.Release) NameRule {
	rule := k.Names
	for _, name := range slices.SortedFunc(maps.Keys(k.Changes), byRelease) {
		if changed := k.Changes[name].Names; changed != "" && !before(r, name) {
			rule = changed
		}
	}
	return rule
}

// Of returns the columns and the behavior of the kind in a release.
func (k *Kind) Of(r release.Release) (columns []Column, behavior Behavior) {
	for _, c := range k.Columns {
		if !before(r, c.Introduced) && (c.Removed == "" || before(r, c.Removed)) {
			columns = append(columns, c)
		}
	}
	behavior = k.Behavior
	for _, name := range slices.SortedFunc(maps.Keys(k.Changes), byRelease) {
		if !before(r, name) {
			change := k.Changes[name]
			behavior.Generation = cmp.Or(change.Generation, behavior.Generation)
			behavior.CreateOnUpdate = behavior.CreateOnUpdate || change.CreateOnUpdate
			behavior.SpecUnowned = behavior.SpecUnowned || change.SpecUnowned
		}
	}
	return columns, behavior
}

// In reports whether a release has the kind.
func (k *Kind) In(r release.Release) bool {
	return !before(r, k.Introduced) && (k.Removed == "" || before(r, k.Removed))
}

// SelectableIn returns the fields that field selectors support in a release.
func (k *Kind) SelectableIn(r release.Release) []Selectable {
	return slices.DeleteFunc(slices.Clone(k.Selectable), func(s Selectable) bool { return before(r, s.Introduced) })
}

// before reports whether a release is older than the one with this name; false for "".
func before(r release.Release, name string) bool {
	named, err := release.Of(name)
	return err == nil && r.Before(named)
}

// Selectable is a field that field selectors support.
type Selectable struct {
	Name string `json:"name"` // for example spec.nodeName
	// At is the path in the storage version; "" if it equals the name.
	At string `json:"at"`
	// Or is the path that is read instead of an absent or empty field; "" for none.
	Or string `json:"or"`
	// Default is the value of an absent field.
	Default string `json:"default"`
	// Introduced is the first release that supports the field; "" for all.
	Introduced string `json:"introduced"`
}

// NameRule is the rule for valid names of objects.
type NameRule string

const (
	NameSubdomain   NameRule = "subdomain"    // RFC 1123 subdomain, the default
	NameLabel       NameRule = "label"        // RFC 1123 label
	NameLabel1035   NameRule = "label1035"    // RFC 1035 label (services)
	NameConfigKey   NameRule = "config-key"   // the key of a ConfigMap (lease candidates)
	NameIP          NameRule = "ip"           // a canonical IP address
	NamePathSegment NameRule = "path-segment" // anything but . .. / % (roles and bindings)
	NameChecked     NameRule = "checked"      // a function of checks validates it
)

// Format returns the format of names that comply with the rule.
func (r NameRule) Format() format.Format {
	switch r {
	case NameLabel:
		return validation.IsDNS1123Label
	case NameLabel1035:
		return validation.IsDNS1035Label
	case NameConfigKey:
		return validation.IsConfigMapKey
	case NameIP:
		return format.CanonicalIP
	case NamePathSegment:
		return format.PathSegment
	case NameChecked:
		return func(string) []string { return nil }
	}
	return validation.IsDNS1123Subdomain
}

// Random reports whether a name that is made from generateName has a random suffix.
func (r NameRule) Random() bool { return r != NameIP }

// In reports whether the version is deprecated in a release.
func (d Deprecation) In(r release.Release) bool { return !before(r, d.Since) }

// Deprecation holds when a version is removed and what replaces it.
type Deprecation struct {
	Since       string `json:"since"`       // release, for example 1.19
	Removed     string `json:"removed"`     // release; "" if not announced
	Replacement string `json:"replacement"` // group/version and kind; may be empty
	// Warning is the warning of a CustomResourceDefinition for its clients.
	Warning string `json:"-"`
}
