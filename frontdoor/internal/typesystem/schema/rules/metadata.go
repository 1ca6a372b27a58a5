package rules

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/format"
	"github.com/portico-platform/portico/services/release"
)

// maxAnnotations limits the keys and values of an object's annotations together, in bytes.
const maxAnnotations = 256 << 10

// Identity holds a type's rules for metadata.
type Identity struct {
	Names      format.Format // format of names
	Namespaced bool
	// AnyFinalizer allows finalizers without a domain.
	AnyFinalizer bool
}

// Metadata validates the metadata of an object (section "Common object metadata"). The
// rules of labels and the rest of ObjectMeta are in kinds/meta/metadata.yaml.
func (c *Check) Metadata(t Identity, object, old map[string]any) {
	at := &field.Path{Name: "metadata"}
	metadata, _ := object["metadata"].(map[string]any)
	before, _ := old["metadata"].(map[string]any)
	c.names(t, metadata, at)
	c.annotations(metadata, at)
	c.owners(metadata, at)
	c.finalizers(t, metadata, before, at)
	if generation := Number(metadata, "generation"); generation < 0 {
		c.Invalid(at.Field("generation"), generation, "must be greater than or equal to 0")
	}
	if generation := Number(metadata, "generation"); generation < 0 {
		c.Invalid(at.Field("generation"), generation, "must be greater than or equal to 0")
	}
	if before == nil {
		return
	}
	for _, name := range []string{"name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		if !Same(metadata[name], before[name]) {
			c.Invalid(at.Field(name), metadata[name], "field is immutable")
		}
	}
}

// names validates name, generateName and namespace.
func (c *Check) names(t Identity, metadata map[string]any, at *field.Path) {
	if Text(metadata, "name") == "" {
		c.Required(at.Field("name"), "name or generateName is required")
	}
	c.nameOf(metadata, t.Names, at)
	namespace, _ := metadata["namespace"].(string)
	switch {
	case !t.Namespaced && namespace != "":
		c.Forbidden(at.Field("namespace"), "not allowed on this type")
	case t.Namespaced && namespace == "":
		c.Required(at.Field("namespace"), "")
	case t.Namespaced:
		for _, problem := range validation.IsDNS1123Label(namespace) {
			c.Invalid(at.Field("namespace"), namespace, problem)
		}
	}
}

// Name validates the name and the generateName of the object by a rule that depends on the
// object. The kind has the NameRule "checked".
func (c *Check) Name(valid format.Format) {
	c.nameOf(Object(c.Root, "metadata"), valid, &field.Path{Name: "metadata"})
}

func (c *Check) nameOf(metadata map[string]any, valid format.Format, at *field.Path) {
	if prefix := Text(metadata, "generateName"); prefix != "" {
		for _, problem := range valid(completed(prefix)) {
			c.Invalid(at.Field("generateName"), prefix, problem)
		}
	}
	c.Must(valid, Text(metadata, "name"), at.Field("name"))
}

// completed returns a generateName without a trailing dash, which is valid there because a
// suffix follows.
func completed(prefix string) string {
	if start, dashed := strings.CutSuffix(prefix, "-"); dashed && start != "" {
		return start[:len(start)-1] + "a"
	}
	return prefix
}

// annotations validates the size of annotations; the file has the rule for keys.
func (c *Check) annotations(metadata map[string]any, at *field.Path) {
	annotations, _ := metadata["annotations"].(map[string]any)
	size := 0
	for key, value := range annotations {
		s, _ := value.(string)
		size += len(key) + len(s)
	}
	if size > maxAnnotations {
		c.TooLong(at.Field("annotations"), maxAnnotations)
	}
}

// owners validates ownerReferences: each identifies an owner, at most one is the
// controller, and none is an Event, because Events expire.
func (c *Check) owners(metadata map[string]any, at *field.Path) {
	references, _ := metadata["ownerReferences"].([]any)
	at = at.Field("ownerReferences")
	controller, several := "", false
	for _, item := range references {
		reference, _ := item.(map[string]any)
		apiVersion := Text(reference, "apiVersion")
		if version, err := runtimeschema.ParseGroupVersion(apiVersion); err != nil || version.Version == "" {
			c.Invalid(at.Field("apiVersion"), apiVersion, "version must not be empty")
		}
		for _, name := range []string{"kind", "name", "uid"} {
			if Text(reference, name) == "" {
				c.Invalid(at.Field(name), "", c.named(name)+"must not be empty")
			}
		}
		if reference["apiVersion"] == "v1" && reference["kind"] == "Event" {
			c.Invalid(at, reference, "/v1, Kind=Event is disallowed from being an owner")
		}
		if reference["controller"] != true {
			continue
		}
		name := fmt.Sprintf("%v/%v", reference["kind"], reference["name"])
		if controller != "" && !several {
			several = true // one error is enough, because it shows all references
			c.Invalid(at, references,
				fmt.Sprintf("Only one reference can have Controller set to true. Found \"true\" in references for %s and %s", controller, name))
		}
		controller = name
	}
}

// named returns what messages about the parts of an owner begin with.
func (c *Check) named(part string) string {
	if c.Release.Before(release.V136) {
		return part + " "
	}
	return ""
}

// finalizers validates finalizers, and that none are added to an object that is being
// deleted (section "Two-phase deletion of a resource").
func (c *Check) finalizers(t Identity, metadata, before map[string]any, at *field.Path) {
	names, had := Texts(metadata, "finalizers"), Texts(before, "finalizers")
	at = at.Field("finalizers")
	var added []string
	held := make(map[string]bool, len(had))
	for _, name := range had {
		held[name] = true
	}
	for i, name := range names {
		for _, problem := range validation.IsQualifiedName(name) {
			c.Invalid(at, name, problem)
		}
		if !strings.Contains(name, "/") && !c.OwnFinalizer(name) && !t.AnyFinalizer {
			c.Invalid(at.Item(i), name, "name is neither a standard finalizer name nor is it fully qualified")
		}
		if !held[name] {
			added = append(added, name)
		}
	}
	if slices.Contains(names, metav1.FinalizerOrphanDependents) && slices.Contains(names, metav1.FinalizerDeleteDependents) {
		c.Invalid(at, names, "finalizer orphan and foregroundDeletion cannot be both set")
	}
	if before["deletionTimestamp"] != nil && len(added) > 0 {
		slices.Sort(added)
		c.Forbidden(at, fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %#v", added))
	}
}

// OwnFinalizer reports whether a finalizer belongs to the service itself and needs no
// domain.
func (c *Check) OwnFinalizer(name string) bool {
	return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == c.Vocabulary.NamespaceFinalizer
}

// Embedded validates the apiVersion and kind of an embedded resource.
func (c *Check) Embedded(m map[string]any, at *field.Path) {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, given := m[name]; !given {
			c.Required(at.Field(name), "")
		} else if text, isText := value.(string); !isText {
			c.Invalid(at.Field(name), value, "must be a string")
		} else if text == "" {
			c.Invalid(at.Field(name), value, "must not be empty")
		}
	}
	if metadata, ok := m["metadata"].(map[string]any); ok {
		c.embeddedMetadata(metadata, at.Field("metadata"))
	}
	if version, ok := m["apiVersion"].(string); ok && strings.Count(version, "/") > 1 {
		c.Invalid(at.Field("apiVersion"), version, "unexpected GroupVersion string: "+version)
	}
	if kind, ok := m["kind"].(string); ok && kind != "" {
		for _, problem := range validation.IsDNS1035Label(strings.ToLower(kind)) {
			c.Invalid(at.Field("kind"), kind, "may have mixed case, but should otherwise match: "+problem)
		}
	}
}

// embeddedMetadata validates the metadata of an embedded resource, whose type is not known: its name is a segment
// of a path, and not required.
func (c *Check) embeddedMetadata(metadata map[string]any, at *field.Path) {
	c.nameOf(metadata, format.PathSegment, at)
	if namespace := Text(metadata, "namespace"); namespace != "" {
		for _, problem := range validation.IsDNS1123Label(namespace) {
			c.Invalid(at.Field("namespace"), namespace, problem)
		}
	}
	c.annotations(metadata, at)
	c.owners(metadata, at)
	c.finalizers(Identity{AnyFinalizer: true}, metadata, nil, at)
}
