// Package strategy sets what the service itself decides about an object when it
// is written: system metadata, which half of an object a request may touch, and
// what its kind does differently, which package kinds says. It never rejects (package
// schema does) and never looks at other objects. It serves "Common object
// metadata" and "Two-phase deletion of a resource" of the specification.
package strategy

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
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
	// Functions are those that the behavior of a type may name.
	Functions kinds.Functions
	// Definitions decides about CustomResourceDefinitions.
	Definitions Definitions
	// Feature reports whether a feature is on.
	Feature func(string) bool
}

// Definitions decides what becomes of a CustomResourceDefinition, which depends on all
// others.
type Definitions interface {
	// Establish sets the status of a definition that is about to be stored. Old is nil at
	// a create.
	Establish(obj, old map[string]any, now time.Time)
	// MarkTerminating sets the status of a definition whose deletion is requested.
	MarkTerminating(obj map[string]any, now time.Time)
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
	if w.Type.Subresources["status"] != nil && !w.Type.Behavior.StatusOnCreate {
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
	if w.Type.Behavior.Generation != "" {
		meta["generation"] = int64(1)
	}
}

// PrepareUpdate keeps what an update need not repeat and may not touch: identity and
// times, the status on a write of the object, everything else on a write of the status.
func (w Write) PrepareUpdate(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	delete(meta, "selfLink")
	kinds.Keep(meta, oldMeta, "namespace")
	kinds.Keep(meta, oldMeta, "creationTimestamp")
	if oldMeta["deletionTimestamp"] != nil { // nothing takes the mark of a deletion away
		kinds.Keep(meta, oldMeta, "deletionTimestamp")
	}
	kinds.KeepMissing(meta, oldMeta, "uid") // who sends others is told so by the rules
	kinds.KeepMissing(meta, oldMeta, "deletionGracePeriodSeconds")
	switch {
	case w.Subresource == "":
		if w.Type.Subresources["status"] != nil {
			kinds.Keep(obj, old, "status")
		}
	case w.Subresource == "status" || w.Subresource == "approval":
		w.keepAllButStatus(obj, old)
	}
	w.run(w.Type.Behavior.PrepareUpdate, obj, old)
	w.Settle(obj, old)
}

// PrepareCreate completes a new object that is identified and has its defaults.
func (w Write) PrepareCreate(obj map[string]any) {
	for field, value := range w.Type.Behavior.InitialStatus {
		tree.Object(obj, "status")[field] = value
	}
	w.run(w.Type.Behavior.PrepareCreate, obj, nil)
	w.Settle(obj, nil)
}

// run calls functions of the kind, in their order.
func (w Write) run(names []string, obj, old map[string]any) {
	for _, name := range names {
		w.Functions.Prepare[name](kinds.Write{Version: w.Type.Version, Subresource: w.Subresource, User: w.User,
			Vocabulary: w.Vocabulary, Now: w.Now, Feature: w.Feature}, obj, old)
	}
}

// Settle decides on what nobody but the service decides on, whatever an object that
// is otherwise complete says about it: what has become of a definition. Old is nil
// at a create. Admission may have changed the object in between, so it is called
// again after that.
func (w Write) Settle(obj, old map[string]any) {
	if !w.Type.Behavior.DefinesTypes {
		return
	}
	if w.Subresource == "" {
		if old == nil {
			delete(obj, "status")
		} else {
			kinds.Keep(obj, old, "status")
		}
	}
	w.Definitions.Establish(obj, old, w.Now)
}

// Count gives a changed object the next generation. What it compares has to be
// complete: a default that the client left out is no change.
func (w Write) Count(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	kinds.Keep(meta, oldMeta, "generation")
	w.run(w.Type.Behavior.CountChange, obj, old)
	if w.counted(obj, old) {
		generation, _ := oldMeta["generation"].(int64)
		meta["generation"] = generation + 1
	}
}

// keepAllButStatus undoes what a write of the status changed elsewhere. Metadata goes
// along with it where the type lets it.
func (w Write) keepAllButStatus(obj, old map[string]any) {
	for field := range obj {
		if field != "metadata" && field != "status" && field != "apiVersion" && field != "kind" {
			kinds.Keep(obj, old, field)
		}
	}
	for field := range old {
		if field != "metadata" && field != "status" {
			kinds.Keep(obj, old, field)
		}
	}
	for _, field := range w.Type.Behavior.StatusKeeps {
		kinds.Keep(Metadata(obj), Metadata(old), field)
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
	if heldBySpec(obj) {
		return false
	}
	grace, ok := number(Metadata(obj)["deletionGracePeriodSeconds"])
	return !ok || grace == 0
}

// heldBySpec reports whether an object is a namespace that has something in it.
func heldBySpec(obj map[string]any) bool {
	held, _, _ := unstructured.NestedStringSlice(obj, "spec", "finalizers")
	return len(held) > 0 && obj["kind"] == "Namespace"
}

// counted reports whether an update is a new generation: whether anything but metadata
// and status differs. A custom type without a status subresource has no status in that
// sense. The annotations of a deployment are for its replica sets too, which its
// controller has to look at.
func (w Write) counted(obj, old map[string]any) bool {
	switch w.Type.Behavior.Generation {
	case kinds.CountSpec:
	case kinds.CountSpecAndNotes:
		if w.Subresource == "" && !tree.Equal(Metadata(obj)["annotations"], Metadata(old)["annotations"]) {
			return true
		}
	case kinds.CountSpecAndLabels:
		if !tree.Equal(Metadata(obj)["labels"], Metadata(old)["labels"]) {
			return true
		}
	default:
		return false
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
