package profiles

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/core/pods/podspec"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/tree"
)

// armourFields is the first release with AppArmor profiles in fields.
var armourFields, _ = release.Of("1.30")

// syncAppArmor copies the AppArmor profiles of a new pod from its annotations to its fields,
// where these are not set.
func syncAppArmor(w kinds.Write, pod, _ map[string]any) {
	spec := rules.Object(pod, "spec")
	if w.Release.Before(armourFields) || rules.Text(rules.Object(spec, "os"), "name") == "windows" {
		return
	}
	prefix, annotations := armourPrefix(w.Vocabulary), rules.Object(pod, "metadata", "annotations")
	ofPod := rules.Object(spec, "securityContext", "appArmorProfile")
	for _, container := range podspec.Containers(spec) {
		profile := profileOfName(rules.Text(annotations, prefix+rules.Text(container, "name")))
		own := rules.Object(container, "securityContext", "appArmorProfile")
		if profile != nil && own == nil && !rules.Same(profile, ofPod) {
			tree.Object(container, "securityContext")["appArmorProfile"] = profile
		}
	}
}

// matching checks that the profiles of a new pod are the same in its annotations and fields.
func matching(c *rules.Check, pod map[string]any, at *field.Path) {
	spec, annotations := rules.Object(pod, "spec"), rules.Object(pod, "metadata", "annotations")
	of := func(holder map[string]any, kind string) map[string]any {
		return rules.Object(holder, "securityContext", kind)
	}
	context := at.Field("securityContext")
	inField{"seccomp", of(spec, "seccompProfile"), context.Field("seccompProfile")}.match(c, annotations[c.Vocabulary.Qualified("seccomp.security.alpha", "pod")])
	armoured := !c.Release.Before(armourFields) && rules.Text(rules.Object(spec, "os"), "name") != "windows"
	for place, container := range podspec.Containers(spec) {
		name, at := rules.Text(container, "name"), place.In(at).Field("securityContext")
		inField{"seccomp", of(container, "seccompProfile"), at.Field("seccompProfile")}.match(c, annotations[c.Vocabulary.Qualified("container.seccomp.security.alpha", name)])
		profile := of(container, "appArmorProfile")
		if profile == nil {
			profile = of(spec, "appArmorProfile")
		}
		if armoured {
			inField{"apparmor", profile, at.Field("appArmorProfile")}.match(c, annotations[armourPrefix(c.Vocabulary)+name])
		}
	}
}

// inField is a profile of a security system in a field, nil if it is not set.
type inField struct {
	system  string
	profile map[string]any
	at      *field.Path
}

// match checks that an annotation, if there is one, names the profile.
func (f inField) match(c *rules.Check, annotation any) {
	name, given := annotation.(string)
	if !given || f.profile == nil {
		return
	}
	other := func(part, what string) {
		c.Forbidden(f.at.Field(part), f.system+" "+what+" in annotation and field must match")
	}
	switch kind := rules.Text(f.profile, "type"); kind {
	case "Unconfined", "RuntimeDefault":
		if name != profileNames[kind] && !(f.system == "seccomp" && kind == "RuntimeDefault" && name == "docker/default") {
			other("type", "type")
		}
	case localhost:
		file, local := strings.CutPrefix(name, localProfile)
		if !local {
			other("type", "type")
		} else if f.profile["localhostProfile"] != file {
			other("localhostProfile", "profile")
		}
	}
}
