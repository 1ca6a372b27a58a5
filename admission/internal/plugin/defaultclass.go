package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Class is the part of a StorageClass or IngressClass that admission reads.
type Class struct {
	Name    string
	Default bool
	Created string // in RFC 3339
	// Expands is allowVolumeExpansion of a StorageClass.
	Expands bool
}

// parseClass returns a parser of stored classes. Any of the annotations marks a class as
// the default.
func parseClass(marks ...string) func(services.Object) (Class, error) {
	return func(o services.Object) (Class, error) {
		var stored struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
				Created     string            `json:"creationTimestamp"`
			} `json:"metadata"`
			AllowVolumeExpansion bool `json:"allowVolumeExpansion"`
		}
		err := json.Unmarshal(o.JSON, &stored)
		class := Class{Name: o.Key.Name, Created: stored.Metadata.Created, Expands: stored.AllowVolumeExpansion}
		for _, mark := range marks {
			class.Default = class.Default || stored.Metadata.Annotations[mark] == "true"
		}
		return class, err
	}
}

// defaultClass sets the class of a new object that names none to the default one:
// StorageClasses of claims, IngressClasses of ingresses.
type defaultClass struct {
	classes  review.Collection[Class]
	kind     string   // of the classes, in messages
	groups   []string // that serve the resource
	resource string
	// field of the spec and deprecated annotation that name a class.
	field, annotation string
	// newest chooses among several: the newest, and of those the first by name.
	newest bool
}

func (p defaultClass) mutate(_ context.Context, r *review.Review) error {
	if !p.concerns(r) {
		return nil
	}
	object, err := r.Decoded()
	if err != nil {
		return err
	}
	spec := tree.Child(object, "spec")
	_, annotated := tree.Child(object, "metadata", "annotations")[p.annotation]
	// An empty name explicitly selects no class.
	if spec == nil || spec[p.field] != nil || annotated {
		return nil
	}
	if err := p.classes.Unreadable(""); err != nil { // it may be the default
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(p.classes.List("")), func(c Class) bool { return !c.Default })
	switch {
	case len(chosen) == 0:
		return nil
	case len(chosen) > 1 && !p.newest:
		return r.Forbid("Internal error occurred: %d default %s were found", len(chosen), p.kind)
	}
	spec[p.field] = slices.MinFunc(chosen, func(a, b Class) int {
		return cmp.Or(strings.Compare(b.Created, a.Created), strings.Compare(a.Name, b.Name))
	}).Name
	r.Changed()
	return nil
}

func (p defaultClass) concerns(r *review.Review) bool {
	for _, group := range p.groups {
		if r.Is(services.OperationCreate, group, p.resource) {
			return true
		}
	}
	return false
}
