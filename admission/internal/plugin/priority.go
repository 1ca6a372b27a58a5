package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// PriorityClass is the part of a stored PriorityClass that admission reads.
type PriorityClass struct {
	Name             string
	Value            json.Number
	GlobalDefault    bool
	PreemptionPolicy string
}

// ParsePriorityClass reads a stored priority class.
func ParsePriorityClass(o services.Object) (PriorityClass, error) {
	class := PriorityClass{Name: o.Key.Name, PreemptionPolicy: "PreemptLowerPriority", Value: "0"}
	err := json.Unmarshal(o.JSON, &class)
	return class, err
}

// priority sets the priority of new pods from the class that they name, or from the
// default class, and keeps it on updates that lack it. It rejects a second default class.
type priority struct {
	classes review.Collection[PriorityClass]
	store   services.Reader
	group   string // of the classes
}

func (p priority) mutate(ctx context.Context, r *review.Review) error {
	if r.Is(services.OperationUpdate, "", "pods") {
		return keepPriority(r)
	}
	_, spec, err := r.NewPod()
	if err != nil || spec == nil {
		return err
	}
	name, _ := spec["priorityClassName"].(string)
	class, err := p.class(ctx, r, name)
	if err != nil {
		return err
	}
	if given := spec["priority"]; given != nil && fmt.Sprint(given) != class.Value.String() {
		return r.Forbid("the integer value of priority (%v) must not be provided in pod spec; priority admission controller computed %v from the given PriorityClass name", given, class.Value)
	}
	if given := spec["preemptionPolicy"]; given != nil && given != class.PreemptionPolicy {
		return r.Forbid("the string value of PreemptionPolicy (%v) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", given, class.PreemptionPolicy)
	}
	if class.Name != "" {
		spec["priorityClassName"] = class.Name
	}
	spec["priority"], spec["preemptionPolicy"] = class.Value, class.PreemptionPolicy
	r.Changed()
	return nil
}

// keepPriority copies the fields that mutate set at creation from the old pod if the new
// one lacks them.
func keepPriority(r *review.Review) error {
	names := []string{"priority", "preemptionPolicy"}
	pod, err := r.Decoded()
	if err != nil {
		return err
	}
	given := tree.Child(pod, "spec")
	if !slices.ContainsFunc(names, func(name string) bool { return given[name] == nil }) {
		return nil // the common case, without decoding the old pod
	}
	old, err := tree.Decode(r.OldObject)
	if err != nil {
		return err
	}
	before, spec := tree.Object(old, "spec"), tree.Object(pod, "spec")
	for _, name := range names {
		if spec[name] == nil && before[name] != nil {
			spec[name] = before[name]
			r.Changed()
		}
	}
	return nil
}

// validate rejects a second default class.
func (p priority) validate(_ context.Context, r *review.Review) error {
	create := r.Is(services.OperationCreate, p.group, "priorityclasses")
	if !create && !r.Is(services.OperationUpdate, p.group, "priorityclasses") {
		return nil
	}
	class, err := r.Decoded()
	if err != nil || class["globalDefault"] != true {
		return err
	}
	chosen, err := p.globalDefault()
	if err == nil && chosen.Name != "" && (create || chosen.Name != r.Name) {
		return r.Forbid("PriorityClass %s is already marked as default. Only one default can exist", chosen.Name)
	}
	return err
}

// class returns the class with a name or, if the name is empty, the default class: of
// several the one with the lowest value; if there is none, a class of value 0 without a
// name.
func (p priority) class(ctx context.Context, r *review.Review, name string) (PriorityClass, error) {
	if name == "" {
		return p.globalDefault()
	}
	if class, ok := p.classes.Get("", name); ok {
		return class, nil
	}
	// The mirror may lag behind the store, so only the newest state rejects the pod.
	key := resource.Key{GroupResource: resource.GroupResource{Group: p.group, Resource: "priorityclasses"}, Name: name}
	stored, err := p.store.Get(ctx, services.GetRequest{Key: key})
	if services.IsReason(err, services.ReasonNotFound) {
		return PriorityClass{}, r.Forbid("no PriorityClass with name %s was found", name)
	}
	if err != nil {
		return PriorityClass{}, err
	}
	return ParsePriorityClass(stored)
}

func (p priority) globalDefault() (PriorityClass, error) {
	chosen := PriorityClass{Value: "0", PreemptionPolicy: "PreemptLowerPriority"}
	if err := p.classes.Unreadable(""); err != nil { // it may be the default
		return chosen, err
	}
	var lowest int64
	for _, class := range p.classes.List("") {
		if !class.GlobalDefault {
			continue
		}
		value, err := class.Value.Int64()
		if err != nil {
			return chosen, fmt.Errorf("reading priority class %q: %w", class.Name, err)
		}
		if chosen.Name == "" || value < lowest {
			chosen, lowest = class, value
		}
	}
	return chosen, nil
}
