package profiles

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// Types of seccomp profiles in fields, and their names in annotations.
const (
	localhost    = "Localhost"
	localProfile = "localhost/"
)

var (
	profileNames = map[string]string{"Unconfined": "unconfined", "RuntimeDefault": "runtime/default"}
	profileTypes = map[string]string{"unconfined": "Unconfined", "runtime/default": "RuntimeDefault", "docker/default": "RuntimeDefault"}
)

// fieldsOnly is the first release whose pods have no seccomp profiles in annotations.
var fieldsOnly, _ = release.Of("1.27")

// syncSeccomp copies the seccomp profiles of a new pod from its fields to its annotations
// and back, where only one of them is set: kubelets of older releases read the annotations.
func syncSeccomp(w kinds.Write, pod, _ map[string]any) {
	if !w.Release.Before(fieldsOnly) {
		return
	}
	spec := rules.Object(pod, "spec")
	syncProfile(pod, spec, w.Vocabulary.Qualified("seccomp.security.alpha", "pod"))
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		for _, container := range rules.Objects(spec, list) {
			syncProfile(pod, container, w.Vocabulary.Qualified("container.seccomp.security.alpha", rules.Text(container, "name")))
		}
	}
}

// syncProfile synchronizes the profile of a pod or container with the annotation.
func syncProfile(pod, holder map[string]any, annotation string) {
	profile, named := rules.Object(holder, "securityContext", "seccompProfile"), rules.Text(rules.Object(pod, "metadata", "annotations"), annotation)
	switch {
	case len(profile) > 0 && named == "":
		if name := nameOfProfile(profile); name != "" {
			tree.Object(tree.Object(pod, "metadata"), "annotations")[annotation] = name
		}
	case len(profile) == 0 && named != "":
		if profile := profileOfName(named); profile != nil {
			tree.Object(holder, "securityContext")["seccompProfile"] = profile
		}
	}
}

// nameOfProfile returns the value of the annotation for a profile; "" if there is none.
func nameOfProfile(profile map[string]any) string {
	if file := rules.Text(profile, "localhostProfile"); profile["type"] == localhost && file != "" {
		return localProfile + file
	}
	return profileNames[rules.Text(profile, "type")]
}

// profileOfName returns the profile for the value of an annotation; nil if it is invalid.
func profileOfName(name string) map[string]any {
	if file, ok := strings.CutPrefix(name, localProfile); ok && file != "" {
		return map[string]any{"type": localhost, "localhostProfile": file}
	}
	if kind := profileTypes[name]; kind != "" {
		return map[string]any{"type": kind}
	}
	return nil
}
