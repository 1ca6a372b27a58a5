package profiles

import (
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
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
	eachContainer(spec, nil, func(container map[string]any, _ *field.Path) {
		profile := profileOfName(rules.Text(annotations, prefix+rules.Text(container, "name")))
		own := rules.Object(container, "securityContext", "appArmorProfile")
		if profile != nil && own == nil && !rules.Same(profile, ofPod) {
			tree.Object(container, "securityContext")["appArmorProfile"] = profile
		}
	})
}

// matching checks that the profiles of a new pod are the same in its annotations and fields.
func matching(c *rules.Check, pod map[string]any, at *field.Path) {
	spec, annotations := rules.Object(pod, "spec"), rules.Object(pod, "metadata", "annotations")
	of := func(holder map[string]any, kind string) map[string]any {
		return rules.Object(holder, "securityContext", kind)
	}
	context := at.Field("securityContext")
	same(c, "seccomp", annotations[c.Vocabulary.Qualified("seccomp.security.alpha", "pod")], of(spec, "seccompProfile"), context.Field("seccompProfile"))
	armoured := !c.Release.Before(armourFields) && rules.Text(rules.Object(spec, "os"), "name") != "windows"
	eachContainer(spec, at, func(container map[string]any, at *field.Path) {
		name, at := rules.Text(container, "name"), at.Field("securityContext")
		same(c, "seccomp", annotations[c.Vocabulary.Qualified("container.seccomp.security.alpha", name)], of(container, "seccompProfile"), at.Field("seccompProfile"))
		profile := of(container, "appArmorProfile")
		if profile == nil {
			profile = of(spec, "appArmorProfile")
		}
		if armoured {
			same(c, "apparmor", annotations[armourPrefix(c.Vocabulary)+name], profile, at.Field("appArmorProfile"))
		}
	})
}

// same checks that an annotation, if there is one, names a profile.
func same(c *rules.Check, system string, annotation any, profile map[string]any, at *field.Path) {
	name, given := annotation.(string)
	if !given || profile == nil {
		return
	}
	other := func(part, what string) {
		c.Forbidden(at.Field(part), system+" "+what+" in annotation and field must match")
	}
	switch kind := rules.Text(profile, "type"); kind {
	case "Unconfined", "RuntimeDefault":
		if name != profileNames[kind] && !(system == "seccomp" && kind == "RuntimeDefault" && name == "docker/default") {
			other("type", "type")
		}
	case localhost:
		file, local := strings.CutPrefix(name, localProfile)
		if !local {
			other("type", "type")
		} else if profile["localhostProfile"] != file {
			other("localhostProfile", "profile")
		}
	}
}

// eachContainer calls do with each container of a pod and its path.
func eachContainer(spec map[string]any, at *field.Path, do func(container map[string]any, at *field.Path)) {
	for _, list := range [...]string{"initContainers", "containers", "ephemeralContainers"} {
		for i, container := range rules.Objects(spec, list) {
			do(container, at.Field(list).Item(i))
		}
	}
}
