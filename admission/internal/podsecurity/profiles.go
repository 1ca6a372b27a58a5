package podsecurity

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The names of the seccomp profile of the runtime, as annotations have them; the second
// is the older one, and stands for the first.
const (
	runtimeDefault = "runtime/default"
	dockerDefault  = "docker/default"
)

// seccompOfPod and appArmorOf are the annotations of a pod that name profiles.
func (c *check) seccompOfPod() string { return c.vocabulary.Qualified("seccomp.security.alpha", "pod") }

func (c *check) appArmorOf(container string) string {
	return c.vocabulary.Qualified("container.apparmor.security.beta", container)
}

// profileName returns a seccomp profile as annotations name it.
func profileName(p *corev1.SeccompProfile) string {
	switch p.Type {
	case corev1.SeccompProfileTypeUnconfined:
		return "unconfined"
	case corev1.SeccompProfileTypeRuntimeDefault:
		return runtimeDefault
	case corev1.SeccompProfileTypeLocalhost:
		if p.LocalhostProfile != nil {
			return "localhost/" + *p.LocalhostProfile
		}
	}
	return ""
}

// podSeccomp returns the profile of the pod, by its annotation or else its field.
func (c *check) podSeccomp() string {
	if profile := c.pod.Annotations[c.seccompOfPod()]; profile != "" {
		return profile
	}
	if own := c.pod.Spec.SecurityContext; own != nil && own.SeccompProfile != nil {
		return profileName(own.SeccompProfile)
	}
	return ""
}

// defaultSeccomp returns the profile of the pod, or that of the policy when it has none.
func (c *check) defaultSeccomp() string {
	if own := c.pod.Spec.SecurityContext; own != nil && own.SeccompProfile != nil || c.pod.Annotations[c.seccompOfPod()] != "" {
		return c.podSeccomp()
	}
	return c.policy.Metadata.Annotations[c.vocabulary.Qualified("seccomp.security.alpha", "defaultProfileName")]
}

// containerSeccomp returns the profile of a container: its own field or annotation, or
// else the field or annotation of the pod.
func (c *check) containerSeccomp(container *container) string {
	if own := container.context(); own.SeccompProfile != nil {
		return profileName(own.SeccompProfile)
	}
	if profile, ok := c.pod.Annotations[c.vocabulary.Qualified("container.seccomp.security.alpha", container.name)]; ok {
		return profile
	}
	if own := c.pod.Spec.SecurityContext; own != nil && own.SeccompProfile != nil {
		return profileName(own.SeccompProfile)
	}
	return c.pod.Annotations[c.seccompOfPod()]
}

// seccomp checks a profile, which an annotation would name.
func (c *check) seccomp(annotation, profile string) field.ErrorList {
	allowed, restricted := c.policy.Metadata.Annotations[c.vocabulary.Qualified("seccomp.security.alpha", "allowedProfileNames")]
	at := field.NewPath("pod", "metadata", "annotations").Key(annotation)
	names := strings.Split(allowed, ",")
	if slices.Contains(names, runtimeDefault) || slices.Contains(names, dockerDefault) {
		names = append(names, runtimeDefault, dockerDefault)
	}
	switch {
	case restricted && (slices.Contains(names, "*") || slices.Contains(names, profile)):
		return nil
	case !restricted && profile == "":
		return nil
	case !restricted:
		return field.ErrorList{field.Forbidden(at, "seccomp may not be set")}
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf("%s is not an allowed seccomp profile. Valid values are %v", profile, allowed))}
}

// appArmor checks the AppArmor profile of a container. A policy without a list of
// profiles allows all.
func (c *check) appArmor(container string) field.ErrorList {
	allowed, restricted := c.policy.Metadata.Annotations[c.vocabulary.Qualified("apparmor.security.beta", "allowedProfileNames")]
	if !restricted {
		return nil
	}
	at := field.NewPath("pod", "metadata", "annotations").Key(c.appArmorOf(container))
	switch profile := c.pod.Annotations[c.appArmorOf(container)]; {
	case profile == "":
		return field.ErrorList{field.Forbidden(at, "AppArmor profile must be set")}
	case !slices.Contains(strings.Split(allowed, ","), profile):
		return field.ErrorList{field.Forbidden(at, fmt.Sprintf("%s is not an allowed profile. Allowed values: %q", profile, allowed))}
	}
	return nil
}
