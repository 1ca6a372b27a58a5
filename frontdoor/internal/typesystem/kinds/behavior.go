package kinds

import (
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Behavior is what writes of a kind do differently. The zero value is what most kinds do.
type Behavior struct {
	// CreateOnUpdate lets an update (PUT) create an object that is missing.
	CreateOnUpdate bool `json:"createOnUpdate"`
	// RequireResourceVersion makes an update (PUT) name the resourceVersion that it was
	// made on. An update of another kind without one replaces whatever there is.
	RequireResourceVersion bool `json:"requireResourceVersion"`
	// ReturnDeleted answers a deletion with the object instead of a Status.
	ReturnDeleted bool `json:"returnDeleted"`
	// UnqualifiedFinalizers allows finalizers without a domain.
	UnqualifiedFinalizers bool `json:"unqualifiedFinalizers"`
	// DefinesTypes marks CustomResourceDefinitions: package crd decides on their status.
	DefinesTypes bool `json:"definesTypes"`

	// Generation says what metadata.generation counts.
	Generation Generation `json:"generation"`
	// KeepGenerationOnDelete does not count the request to delete.
	KeepGenerationOnDelete bool `json:"keepGenerationOnDelete"`

	// StatusOnCreate keeps the status that an object is created with.
	StatusOnCreate bool `json:"statusOnCreate"`
	// InitialStatus is set in the status of each new object.
	InitialStatus map[string]string `json:"initialStatus"`
	// StatusKeeps are the fields of the metadata that a write of the status leaves as
	// they are.
	StatusKeeps []string `json:"statusKeeps"`

	// OrphanDependents are the versions in which a deletion that does not say otherwise
	// leaves the dependents behind.
	OrphanDependents []string `json:"orphanDependents"`
	// NoDependents ignores the propagation policy of a deletion.
	NoDependents bool `json:"noDependents"`
	// NoGracePeriod leaves deletionGracePeriodSeconds out of objects that are deleted.
	NoGracePeriod bool `json:"noGracePeriod"`
	// GracePeriod names the GraceFunc that says how long an object has to end by itself.
	GracePeriod string `json:"gracePeriod"`

	// The PrepareFuncs that complete an object: PrepareCreate a new one, PrepareUpdate a
	// changed one, CountChange one that has its defaults, PrepareDelete one that is being
	// deleted.
	PrepareCreate []string `json:"prepareCreate"`
	PrepareUpdate []string `json:"prepareUpdate"`
	CountChange   []string `json:"countChange"`
	PrepareDelete []string `json:"prepareDelete"`
}

// Generation says what metadata.generation counts.
type Generation string

// Without any of these, objects have no generation.
const (
	CountSpec          Generation = "spec"               // changes of all but metadata and status
	CountSpecAndNotes  Generation = "specAndAnnotations" // and of the annotations
	CountSpecAndLabels Generation = "specAndLabels"      // and of the labels
	ConstantGeneration Generation = "constant"           // it is 1
)

// CustomBehavior returns what custom resources do.
func CustomBehavior() Behavior {
	return Behavior{RequireResourceVersion: true, UnqualifiedFinalizers: true, Generation: CountSpec,
		StatusKeeps: []string{"labels", "annotations", "finalizers", "ownerReferences"}}
}

// Write is what a PrepareFunc may know of a request beside the object.
type Write struct {
	Version     string // of the type that is written
	Subresource string // "" for the object itself
	User        services.UserInfo
	Vocabulary  vocabulary.Vocabulary
	Now         time.Time
	// Feature reports whether a feature is on; nil stands for the defaults.
	Feature func(string) bool
}

// On reports whether an alpha feature is on.
func (w Write) On(feature string) bool { return w.Feature != nil && w.Feature(feature) }

// PrepareFunc completes an object that is about to be stored, in place. Old is what is
// stored; nil at a create.
type PrepareFunc func(w Write, obj, old map[string]any)

// GraceFunc returns the seconds that an object has to end by itself. Asked is what the
// request says; nil when it says nothing.
type GraceFunc func(obj map[string]any, asked *int64) int64

// Keep gives obj the field's value in old, or none.
func Keep(obj, old map[string]any, field string) {
	if value, ok := old[field]; ok {
		obj[field] = value
	} else {
		delete(obj, field)
	}
}

// KeepMissing is Keep for a field that the client left out, or sent empty or zero.
func KeepMissing(obj, old map[string]any, field string) {
	switch v := obj[field].(type) {
	case nil:
		Keep(obj, old, field)
	case string:
		if v == "" {
			Keep(obj, old, field)
		}
	case int64:
		if v == 0 {
			Keep(obj, old, field)
		}
	case []any:
		if len(v) == 0 {
			Keep(obj, old, field)
		}
	}
}
