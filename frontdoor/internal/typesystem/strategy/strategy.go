// Package strategy sets the parts of a written object that the service itself determines:
// system metadata, the half of the object (status or the rest) that the request must not
// change, and kind-specific fields, which package kinds configures. It never rejects an
// object (package schema does) and never reads other objects. It serves "Common object
// metadata" and "Two-phase deletion of a resource" of the specification.
package strategy

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Write holds the inputs of a strategy besides the object.
type Write struct {
	Type        *catalogue.Type
	Subresource string
	Namespace   string // of the path
	User        services.UserInfo
	Vocabulary  vocabulary.Vocabulary
	Now         time.Time
	// Functions are the functions that the behavior of a type can refer to.
	Functions kinds.Functions
	// Definitions sets the status of CustomResourceDefinitions.
	Definitions Definitions
	// Release is the release whose behavior applies.
	Release release.Release
	// Feature reports whether a feature is on.
	Feature func(string) bool
}

// Definitions sets the status of a CustomResourceDefinition, which depends on all others.
type Definitions interface {
	// Establish sets the status of a definition that is about to be stored. old is nil for
	// a create.
	Establish(obj, old map[string]any, now time.Time)
	// MarkTerminating sets the status of a definition whose deletion is requested.
	MarkTerminating(obj map[string]any, now time.Time)
}

// generatedSuffix is the number of random characters after a generateName, and longestBase
// limits the part of generateName before them.
const (
	generatedSuffix = 5
	longestBase     = 63 - generatedSuffix
)

// Identify sets the name, identity and times of a new object, which no field manager owns.
// It removes the status if that is a subresource: it starts with its defaults.
func (w Write) Identify(obj map[string]any) {
	if w.Type.Subresources["status"] != nil && !w.Type.Behavior.StatusOnCreate {
		delete(obj, "status")
	}
	meta := Metadata(obj)
	for _, field := range []string{"selfLink", "clusterName", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"} {
		delete(meta, field)
	}
	if w.Type.Namespaced {
		meta["namespace"] = w.Namespace
	} else {
		delete(meta, "namespace")
	}
	if name, _ := meta["name"].(string); name == "" {
		switch base, _ := meta["generateName"].(string); {
		case base == "":
		case w.Type.NameRule.Random():
			meta["name"] = base[:min(len(base), longestBase)] + rand.String(generatedSuffix)
		default:
			meta["name"] = base
		}
	}
	meta["uid"] = string(uuid.NewUUID())
	meta["creationTimestamp"] = w.Now.UTC().Format(time.RFC3339)
	if w.Type.Behavior.Generation != "" {
		meta["generation"] = int64(1)
	}
}

// Replaces reports whether Identify replaces values which may be of the wrong type.
func (w Write) Replaces(obj map[string]any) bool {
	if status, ok := obj["status"].(map[string]any); obj["status"] != nil && (!ok || len(status) > 0) {
		return true
	}
	meta := Metadata(obj)
	return slices.ContainsFunc([]string{"selfLink", "clusterName", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"},
		func(field string) bool { return meta[field] != nil })
}

// PrepareUpdate restores the parts that an update cannot change: identity and times, the
// status in a write of the object, everything else in a write of the status. It also sets
// parts that a client may omit.
func (w Write) PrepareUpdate(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	delete(meta, "selfLink")
	delete(meta, "clusterName") // only releases before 1.24 have it
	kinds.Keep(meta, oldMeta, "namespace")
	kinds.Keep(meta, oldMeta, "creationTimestamp")
	if oldMeta["deletionTimestamp"] != nil { // a deletion cannot be undone
		kinds.Keep(meta, oldMeta, "deletionTimestamp")
	}
	kinds.KeepMissing(meta, oldMeta, "uid") // validation rejects a different one
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

// PrepareCreate completes a new object after Identify and defaulting.
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
			Vocabulary: w.Vocabulary, Release: w.Release, Now: w.Now, Feature: w.Feature}, obj, old)
	}
}

// Settle sets the status of a CustomResourceDefinition, which only the service determines.
// old is nil for a create. It has to be called again after mutating admission.
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

// Count increments the generation if the update requires it. Both objects must have been
// defaulted: an omitted default is not a change.
func (w Write) Count(obj, old map[string]any) {
	meta, oldMeta := Metadata(obj), Metadata(old)
	kinds.Keep(meta, oldMeta, "generation")
	w.run(w.Type.Behavior.CountChange, obj, old)
	if w.counted(obj, old) {
		generation, _ := oldMeta["generation"].(int64)
		meta["generation"] = generation + 1
	}
}

// keepAllButStatus reverts all changes but those of the status in a write of the status.
// Metadata may change too, apart from the fields in StatusKeeps.
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

// Metadata returns the object's metadata; it adds them if the object has none.
func Metadata(obj map[string]any) map[string]any { return tree.Object(obj, "metadata") }

// Finalizers returns metadata.finalizers.
func Finalizers(obj map[string]any) []string {
	return tree.Texts(obj, "metadata", "finalizers")
}

// Deleting reports whether the object is being deleted.
func Deleting(obj map[string]any) bool {
	at, ok := Metadata(obj)["deletionTimestamp"]
	return ok && at != nil
}

// Finished reports whether an object that is being deleted can be removed: it has no
// finalizers and no grace period left.
func Finished(t *catalogue.Type, obj map[string]any) bool {
	if !Deleting(obj) || len(Finalizers(obj)) > 0 {
		return false
	}
	if heldBySpec(t, obj) {
		return false
	}
	grace, ok := number(Metadata(obj)["deletionGracePeriodSeconds"])
	return !ok || grace == 0
}

// heldBySpec reports whether spec.finalizers delay the removal of an object of type t.
func heldBySpec(t *catalogue.Type, obj map[string]any) bool {
	return t.Behavior.SpecFinalizers && len(tree.List(obj, "spec", "finalizers")) > 0
}

// counted reports whether an update requires a new generation: anything but metadata and
// status differs. The status of a custom type without the subresource counts too. For
// Deployments the annotations count, because the controller copies them to ReplicaSets.
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
		_, had := old[field]
		added := !had && w.Type.Custom // of a custom type, null is a value
		if !ignored(field) && (added || !tree.Equal(obj[field], old[field])) {
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

// number returns an integer in any decoded form.
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
