package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services/reload"
)

// policy is the state of the service.
type policy struct {
	file  string
	known *reload.Files[digests]
}

// image is one image of a pod and where it is.
type image struct {
	name  string
	path  []any  // for Review.Set
	field string // for messages
}

// mutate adds the digests of known tags.
func (p *policy) mutate(_ context.Context, r *sdk.Review) error {
	images, err := imagesOf(r)
	if err != nil {
		return err
	}
	known := p.known.Get()
	var audit []string
	for _, i := range images {
		pinned, ok := known.pin(i.name)
		if !ok {
			continue
		}
		if err := r.Set(pinned, i.path...); err != nil {
			return err
		}
		audit = append(audit, i.name+" is "+pinned)
	}
	if len(audit) > 0 {
		r.Audit("pinned", strings.Join(audit, ", "))
	}
	return nil
}

// validate refuses images without a digest.
func (p *policy) validate(_ context.Context, r *sdk.Review) error {
	images, err := imagesOf(r)
	if err != nil {
		return err
	}
	var causes []sdk.Cause
	for _, i := range images {
		if err := pinned(i.name); err != nil {
			causes = append(causes, sdk.InvalidField(i.field, "%q: %v", i.name, err))
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return r.Invalid(causes...)
}

// imagesOf returns the images of a new or changed pod; none for any other request. An update
// may only name new images: pods that were stored before the service came stay writable.
func imagesOf(r *sdk.Review) ([]image, error) {
	if !r.Is("", "pods") && !r.Is("", "pods/ephemeralcontainers") || r.Object == nil || r.Operation != sdk.Create && r.Operation != sdk.Update {
		return nil, nil
	}
	images, err := decode(r.Decode)
	if err != nil || r.Operation == sdk.Create || r.OldObject == nil {
		return images, err
	}
	old, err := decode(r.DecodeOld)
	if err != nil {
		return nil, err
	}
	stored := map[string]string{}
	for _, i := range old {
		stored[i.field] = i.name
	}
	var changed []image
	for _, i := range images {
		if name, was := stored[i.field]; !was || name != i.name {
			changed = append(changed, i)
		}
	}
	return changed, nil
}

// decode returns the images of the object that a function decodes: a Pod, or the
// EphemeralContainers of one, whose containers are not in a spec.
func decode(into func(any) error) ([]image, error) {
	var pod struct {
		Spec                corev1.PodSpec              `json:"spec"`
		EphemeralContainers []corev1.EphemeralContainer `json:"ephemeralContainers"`
	}
	if err := into(&pod); err != nil {
		return nil, err
	}
	var images []image
	add := func(name string, path ...any) {
		var field strings.Builder
		for _, step := range path {
			switch step := step.(type) {
			case int:
				fmt.Fprintf(&field, "[%d]", step)
			case string:
				field.WriteString("." + step)
			}
		}
		images = append(images, image{name, path, field.String()[1:]})
	}
	for i, c := range pod.Spec.InitContainers {
		add(c.Image, "spec", "initContainers", i, "image")
	}
	for i, c := range pod.Spec.Containers {
		add(c.Image, "spec", "containers", i, "image")
	}
	for i, c := range pod.Spec.EphemeralContainers {
		add(c.Image, "spec", "ephemeralContainers", i, "image")
	}
	for i, c := range pod.EphemeralContainers {
		add(c.Image, "ephemeralContainers", i, "image")
	}
	return images, nil
}
