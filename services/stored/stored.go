// Package stored decides whether what is stored under a key is an object of that key: whole, of the type and name
// of the key, and in a version that this release knows. The store checks what it writes in the same way as what it
// reads, so that nothing that it has accepted is refused later. It knows the names of versions, no schemas, and does
// no I/O. It serves "Persistence" of the specification.
package stored

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// ErrForeign means that the object belongs to another key.
var ErrForeign = errors.New("it is another object than that of its key")

// Offset returns tree.MetadataOffset of the JSON of an object, or why it cannot be that of a key. What the object does
// not say about itself is not checked: records of the suite have no kind.
func Offset(key resource.Key, object []byte) (int, error) {
	is, err := tree.Identify(object)
	if err != nil {
		return 0, err
	}
	if is.Metadata == 0 {
		return 0, errors.New("it has no metadata")
	}
	return is.Metadata, check(key, is)
}

// Check is Offset for an object that is stored with an offset, which must be the right one.
func Check(key resource.Key, object []byte, at int) error {
	found, err := Offset(key, object)
	if err == nil && found != at {
		return errors.New("its metadata is not where the header line says")
	}
	return err
}

func check(key resource.Key, is tree.Identity) error {
	if is.Name != "" && is.Name != key.Name || is.Namespace != "" && is.Namespace != key.Namespace {
		return fmt.Errorf("%w: %.100q in namespace %.100q", ErrForeign, is.Name, is.Namespace)
	}
	group, version, found := strings.Cut(is.APIVersion, "/")
	if !found {
		group, version = "", group
	}
	if key.Custom {
		if is.APIVersion != "" && group != key.Group {
			return fmt.Errorf("%w: of group %.100q", ErrForeign, group)
		}
		return nil
	}
	if !builtIn(key.Group) {
		return nil
	}
	if is.Kind != "" && plural(is.Kind) != key.Resource {
		return fmt.Errorf("%w: of kind %.100q", ErrForeign, is.Kind)
	}
	if is.APIVersion != "" && !Known(group, version) {
		return fmt.Errorf("this release does not know its version %.100q", is.APIVersion)
	}
	return nil
}

// plural returns the resource of a built-in kind: all of them are formed in this way.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case name == "endpoints":
		return name
	case strings.HasSuffix(name, "s"):
		return name + "es"
	case strings.HasSuffix(name, "y"):
		return strings.TrimSuffix(name, "y") + "ies"
	}
	return name + "s"
}

// Known reports whether this release knows a version of a built-in group.
func Known(group, version string) bool { return versions()[group][version] }

func builtIn(group string) bool { return versions()[group] != nil }

// versions returns the versions of each built-in group, in both vocabularies.
var versions = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		short := words[0]
		if short == "core" {
			short = ""
		}
		known := map[string]bool{}
		for _, version := range words[1:] {
			known[version] = true
		}
		for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
			all[v.Group(short)] = known
		}
	}
	return all
})

// table has the versions of all built-in groups since release 1.21, in which objects may be stored. The front door's
// catalogue has a test that it is complete.
const table = `core v1
apiregistration. v1 v1beta1
apps v1 v1beta1 v1beta2
events. v1 v1beta1
authentication. v1 v1beta1 v1alpha1
authorization. v1 v1beta1
autoscaling v2 v1 v2beta1 v2beta2
batch v1 v1beta1 v2alpha1
certificates. v1 v1beta1 v1alpha1
networking. v1 v1beta1 v1alpha1
extensions v1beta1
policy v1 v1beta1
rbac.authorization. v1 v1beta1 v1alpha1
storage. v1 v1beta1 v1alpha1
admissionregistration. v1 v1beta1 v1alpha1
apiextensions. v1 v1beta1
scheduling. v1 v1beta1 v1alpha2 v1alpha1
coordination. v1 v1beta1 v1alpha2 v1alpha1
node. v1 v1beta1 v1alpha1
discovery. v1 v1beta1 v1alpha1
resource. v1 v1beta2 v1beta1 v1alpha3 v1alpha2
flowcontrol.apiserver. v1 v1beta3 v1beta2 v1beta1 v1alpha1
internal.apiserver. v1alpha1
storagemigration. v1 v1beta1 v1alpha1
extension.portico.dev v1
access.portico.dev v1
`
