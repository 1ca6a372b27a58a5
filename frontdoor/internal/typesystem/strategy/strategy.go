// Package strategy sets what the service itself decides about an object when it
// is written: system metadata, which half of an object a request may touch, and
// the few things that single kinds do differently. It never rejects (package
// schema does) and never looks at other objects. It serves "Common object
// metadata" and "Two-phase deletion of a resource" of the specification.
package strategy

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Write is what a strategy may look at beside the object.
type Write struct {
	Type        *catalogue.Type
	Subresource string
	Namespace   string // of the path
	User        services.UserInfo
	Vocabulary  vocabulary.Vocabulary
	Now         time.Time
	// Types has the built-in types, and CustomTypes are all definitions of custom types.
	Types       *catalogue.Catalogue
	CustomTypes []crd.Definition
}

// generatedSuffix is how many random characters follow a generateName, and
// longestBase how much of it is kept.
const (
	generatedSuffix = 5
	longestBase     = 63 - generatedSuffix
)

// Identify gives a new object its name, identity and times, which nobody owns, and
// takes away the status where that is a subresource: it begins with its defaults.
func (w Write) Identify(obj map[string]any) {
	if w.Type.Subresources["status"] != nil && !keepsStatusOnCreate(w.Type) {
		delete(obj, "status")
	}
	meta := Metadata(obj)
	for _, field := range []string{"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"} {
		delete(meta, field)
	}
	if w.Type.Namespaced {
		meta["namespace"] = w.Namespace
	} else {
		delete(meta, "namespace")
	}
	if name, _ := meta["name"].(string); name == "" {
		if base, _ := meta["generateName"].(string); base != "" {
			meta["name"] = base[:min(len(base), longestBase)] + rand.String(generatedSuffix)
		}
	}
	meta["uid"] = string(uuid.NewUUID())
	meta["creationTimestamp"] = w.Now.UTC().Format(time.RFC3339)
	if tracksGeneration(w.Type) || w.Type.Kind == "PriorityClass" { // which is the first there is, and the last
		meta["generation"] = int64(1)
	}
}

// PrepareUpdate keeps what an update need not repeat and may not touch: identity and
// times, the status on a write of the object, everything else on a write of the status.
func (w Write) PrepareUpdate(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	delete(meta, "selfLink")
	keep(meta, oldMeta, "namespace")
	keep(meta, oldMeta, "creationTimestamp")
	if oldMeta["deletionTimestamp"] != nil { // nothing takes the mark of a deletion away
		keep(meta, oldMeta, "deletionTimestamp")
	}
	keepMissing(meta, oldMeta, "uid") // who sends others is told so by the rules
	keepMissing(meta, oldMeta, "deletionGracePeriodSeconds")
	switch {
	case w.Subresource == "":
		if w.Type.Subresources["status"] != nil {
			keep(obj, old, "status")
		}
	case w.Subresource == "status" || w.Subresource == "approval":
		w.keepAllButStatus(obj, old)
	case w.Subresource == "ephemeralcontainers":
		keepAllButEphemeral(obj, old)
	}
	w.updateKind(obj, old)
}

// Count gives a changed object the next generation. What it compares has to be
// complete: a default that the client left out is no change.
func (w Write) Count(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	keep(meta, oldMeta, "generation")
	if w.Type.Kind == "DaemonSet" {
		countTemplates(obj, old)
	}
	if tracksGeneration(w.Type) && w.wantedChanged(obj, old) {
		generation, _ := oldMeta["generation"].(int64)
		meta["generation"] = generation + 1
	}
}

// keepAllButStatus undoes what a write of the status changed elsewhere. Metadata goes
// along with it where the type lets it.
func (w Write) keepAllButStatus(obj, old map[string]any) {
	for field := range obj {
		if field != "metadata" && field != "status" && field != "apiVersion" && field != "kind" {
			keep(obj, old, field)
		}
	}
	for field := range old {
		if field != "metadata" && field != "status" {
			keep(obj, old, field)
		}
	}
	for _, field := range keptWithStatus(w.Type) {
		keep(Metadata(obj), Metadata(old), field)
	}
}

// keepAllButEphemeral undoes what a write of a pod's ephemeral containers changed
// elsewhere.
func keepAllButEphemeral(obj, old map[string]any) {
	added, given := element(obj["spec"])["ephemeralContainers"]
	for field := range obj {
		if field != "metadata" {
			keep(obj, old, field)
		}
	}
	spec := maps.Clone(element(old["spec"]))
	delete(spec, "ephemeralContainers")
	if given {
		spec["ephemeralContainers"] = added
	}
	obj["spec"], obj["status"] = spec, old["status"]
	for _, field := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		keep(Metadata(obj), Metadata(old), field)
	}
}

// keep gives obj the field's value in old, or none.
func keep(obj, old map[string]any, field string) {
	if value, ok := old[field]; ok {
		obj[field] = value
	} else {
		delete(obj, field)
	}
}

// Metadata returns the object's metadata, which it creates when there is none.
func Metadata(obj map[string]any) map[string]any { return tree.Object(obj, "metadata") }

// Finalizers returns metadata.finalizers.
func Finalizers(obj map[string]any) []string {
	list, _, _ := unstructured.NestedStringSlice(obj, "metadata", "finalizers")
	return list
}

// Deleting reports whether deletion of the object was requested.
func Deleting(obj map[string]any) bool {
	at, ok := Metadata(obj)["deletionTimestamp"]
	return ok && at != nil
}

// Finished reports whether nothing holds a deleting object any more.
func Finished(obj map[string]any) bool {
	if !Deleting(obj) || len(Finalizers(obj)) > 0 {
		return false
	}
	if held, _, _ := unstructured.NestedStringSlice(obj, "spec", "finalizers"); len(held) > 0 && obj["kind"] == "Namespace" {
		return false
	}
	grace, ok := number(Metadata(obj)["deletionGracePeriodSeconds"])
	return !ok || grace == 0
}

// wantedChanged reports whether anything but metadata and status differs. A custom
// type without a status subresource has no status in that sense. The annotations of
// a deployment are for its replica sets too, which its controller has to look at.
func (w Write) wantedChanged(obj, old map[string]any) bool {
	if w.Type.Kind == "Deployment" && w.Subresource == "" && !tree.Equal(Metadata(obj)["annotations"], Metadata(old)["annotations"]) {
		return true
	}
	ignored := func(field string) bool {
		return field == "metadata" || field == "status" && (!w.Type.Custom || w.Type.Subresources["status"] != nil)
	}
	for field := range obj {
		if !ignored(field) && !tree.Equal(obj[field], old[field]) {
			return true
		}
	}
	for field := range old {
		if _, ok := obj[field]; !ok && !ignored(field) {
			return true
		}
	}
	return false
}

// number reads an integer, however it was decoded.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	}
	return 0, false
}

// tracksGeneration reports whether metadata.generation counts changes of the spec.
// Types without a reader of it do not have one.
func tracksGeneration(t *catalogue.Type) bool {
	if t.Custom {
		return true
	}
	if t.Key.Group == "" {
		return t.Kind == "ReplicationController"
	}
	without := []string{"HorizontalPodAutoscaler", "CertificateSigningRequest", "StorageClass", "RuntimeClass", "PriorityClass",
		"Event", "Lease", "ControllerRevision", "VolumeAttachment", "CSINode", "CSIDriver", "CSIStorageCapacity",
		"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "PodSecurityPolicy", "APIService"}
	return !slices.Contains(without, t.Kind)
}

// keepsStatusOnCreate names the types whose creator knows their status.
func keepsStatusOnCreate(t *catalogue.Type) bool {
	return t.Key.Group == "" && t.Kind == "Node"
}
