package kinds

import (
	"fmt"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Behavior holds how writes of a kind deviate from the default. The zero value is the
// default, which most kinds have.
type Behavior struct {
	// CreateOnUpdate lets an update (PUT) create an object that does not exist.
	CreateOnUpdate bool `json:"createOnUpdate"`
	// RequireResourceVersion makes metadata.resourceVersion required in an update (PUT).
	// For other kinds an update without it is unconditional.
	RequireResourceVersion bool `json:"requireResourceVersion"`
	// ReturnDeleted makes a deletion return the object instead of a Status.
	ReturnDeleted bool `json:"returnDeleted"`
	// UnqualifiedFinalizers allows finalizers without a domain.
	UnqualifiedFinalizers bool `json:"unqualifiedFinalizers"`
	// SpecFinalizers lets spec.finalizers delay the removal too.
	SpecFinalizers bool `json:"specFinalizers"`
	// DefinesTypes marks CustomResourceDefinitions: package crd validates them and sets
	// their status.
	DefinesTypes bool `json:"definesTypes"`

	// Generation selects the changes that metadata.generation counts.
	Generation Generation `json:"generation"`
	// KeepGenerationOnDelete excludes the deletion request from the generation.
	KeepGenerationOnDelete bool `json:"keepGenerationOnDelete"`

	// StatusOnCreate keeps the status in the request that creates an object.
	StatusOnCreate bool `json:"statusOnCreate"`
	// InitialStatus is set in the status of each new object.
	InitialStatus map[string]string `json:"initialStatus"`
	// StatusKeeps are the metadata fields that a write of the status does not change.
	StatusKeeps []string `json:"statusKeeps"`

	// SpecUnowned makes no manager the owner of the fields of the spec.
	SpecUnowned bool `json:"specUnowned"`

	// OrphanDependents are the versions in which a deletion without a propagation policy
	// orphans the dependents.
	OrphanDependents []string `json:"orphanDependents"`
	// OrphanWarning is the warning about such a deletion, which releases have since 1.23.
	OrphanWarning string `json:"orphanWarning"`
	// NoDependents ignores the propagation policy of a deletion.
	NoDependents bool `json:"noDependents"`
	// NoGracePeriod omits deletionGracePeriodSeconds from objects that are being deleted.
	NoGracePeriod bool `json:"noGracePeriod"`
	// Undeletable are the names of objects of the system, whose deletion is Forbidden (403). A
	// deletion of a collection includes them, as in Kubernetes.
	Undeletable []string `json:"undeletable"`
	// GracePeriod names the GraceFunc that returns the grace period.
	GracePeriod string `json:"gracePeriod"`

	// The PrepareFuncs of a kind: PrepareCreate for new objects, PrepareUpdate for updated
	// ones, CountChange for updated ones after defaulting, PrepareDelete for objects that
	// are being deleted.
	PrepareCreate []string `json:"prepareCreate"`
	PrepareUpdate []string `json:"prepareUpdate"`
	CountChange   []string `json:"countChange"`
	PrepareDelete []string `json:"prepareDelete"`
}

// Generation selects the changes that metadata.generation counts.
type Generation string

// The zero value means that objects have no generation.
const (
	CountSpec          Generation = "spec"               // changes outside metadata and status
	CountSpecAndNotes  Generation = "specAndAnnotations" // and changes of annotations
	CountSpecAndLabels Generation = "specAndLabels"      // and changes of labels
	ConstantGeneration Generation = "constant"           // always 1
)

func (g Generation) check() error {
	switch g {
	case "", CountSpec, CountSpecAndNotes, CountSpecAndLabels, ConstantGeneration:
		return nil
	}
	return fmt.Errorf("unknown generation %q", g)
}

// CustomBehavior returns the behavior of custom resources.
func CustomBehavior() Behavior {
	return Behavior{RequireResourceVersion: true, UnqualifiedFinalizers: true, Generation: CountSpec,
		StatusKeeps: []string{"labels", "annotations", "finalizers", "ownerReferences"}}
}

// Write is the part of a request that a PrepareFunc may depend on, besides the object.
type Write struct {
	Version     string // of the type that is written
	Subresource string // "" for the object itself
	User        services.UserInfo
	Vocabulary  vocabulary.Vocabulary
	Release     release.Release
	Now         time.Time
	// Feature reports whether a feature is on; nil means the defaults.
	Feature func(string) bool
}

// On reports whether an alpha feature is on.
func (w Write) On(feature string) bool { return w.Feature != nil && w.Feature(feature) }

// PrepareFunc modifies, in place, an object that is about to be stored. old is the stored
// object; nil for a create.
type PrepareFunc func(w Write, obj, old map[string]any)

// GraceFunc returns the grace period of a deletion in seconds. requested is the value in
// the request; nil if it has none.
type GraceFunc func(obj map[string]any, requested *int64) int64

// Keep sets a field of obj to its value in old, or removes it if old lacks it.
func Keep(obj, old map[string]any, field string) {
	if value, ok := old[field]; ok {
		obj[field] = value
	} else {
		delete(obj, field)
	}
}

// KeepMissing is Keep for a field that is absent, empty or zero in obj.
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
