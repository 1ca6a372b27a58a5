package rules

import (
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Derivation computes defaults of an object from its other fields, in place. It
// runs after the constant defaults.
type Derivation func(m map[string]any, v vocabulary.Vocabulary)

// Derivations are those that the overlay may name.
var Derivations = map[string]Derivation{
	"pull policy by image tag":           pullPolicy,
	"target port is port":                targetPort,
	"service account alias":              serviceAccountAlias,
	"requests are limits":                podRequests,
	"host ports on the host network":     hostPorts,
	"empty dir without a source":         emptyDir,
	"selector and labels of template":    labelsOfTemplate,
	"completions and parallelism":        completions,
	"selector by uid":                    jobSelector,
	"name label":                         nameLabel,
	"group of the role":                  roleGroup,
	"group of the subject":               subjectGroup,
	"egress when there are egress rules": policyTypes,
	"names from kind":                    customNames,
	"signer of old requests":             oldSigner,
	"limits by type":                     limitDefaults,
}

// pullPolicy pulls an image that can change each time.
func pullPolicy(m map[string]any, _ vocabulary.Vocabulary) {
	if m["imagePullPolicy"] != nil {
		return
	}
	image, _ := m["image"].(string)
	m["imagePullPolicy"] = "IfNotPresent"
	name, _, pinned := strings.Cut(image, "@")
	repository := name[strings.LastIndex(name, "/")+1:]
	if _, tag, tagged := strings.Cut(repository, ":"); !pinned && !tagged || tag == "latest" {
		m["imagePullPolicy"] = "Always"
	}
}

func targetPort(m map[string]any, _ vocabulary.Vocabulary) {
	if target := m["targetPort"]; target == nil || target == "" || target == int64(0) {
		if port, ok := m["port"]; ok {
			m["targetPort"] = port
		}
	}
}

// serviceAccountAlias keeps the field's older name in step.
func serviceAccountAlias(m map[string]any, _ vocabulary.Vocabulary) {
	if name, ok := m["serviceAccountName"].(string); ok && name != "" {
		m["serviceAccount"] = name
	} else if name, ok := m["serviceAccount"].(string); ok && name != "" {
		m["serviceAccountName"] = name
	}
}

// podRequests asks for what the limits allow, where nothing is asked for.
func podRequests(m map[string]any, _ vocabulary.Vocabulary) {
	spec, _ := m["spec"].(map[string]any)
	for _, container := range containersOf(spec) {
		resources, _ := container["resources"].(map[string]any)
		limits, _ := resources["limits"].(map[string]any)
		if len(limits) == 0 {
			continue
		}
		requests, ok := resources["requests"].(map[string]any)
		if !ok {
			requests = map[string]any{}
			resources["requests"] = requests
		}
		Complete(requests, limits)
	}
}

// containersOf returns the containers of a pod, those that run first included.
func containersOf(spec map[string]any) []map[string]any {
	var all []map[string]any
	for _, name := range []string{"initContainers", "containers"} {
		list, _ := spec[name].([]any)
		for _, item := range list {
			if container, ok := item.(map[string]any); ok {
				all = append(all, container)
			}
		}
	}
	return all
}

func hostPorts(m map[string]any, _ vocabulary.Vocabulary) {
	if m["hostNetwork"] != true {
		return
	}
	for _, container := range containersOf(m) {
		ports, _ := container["ports"].([]any)
		for _, item := range ports {
			if port, ok := item.(map[string]any); ok && port["hostPort"] == nil && port["containerPort"] != nil {
				port["hostPort"] = port["containerPort"]
			}
		}
	}
}

func emptyDir(m map[string]any, _ vocabulary.Vocabulary) {
	if len(m) == 1 && m["name"] != nil {
		m["emptyDir"] = map[string]any{}
	}
}

// labelsOfTemplate lets a replication controller select what its template makes.
func labelsOfTemplate(m map[string]any, _ vocabulary.Vocabulary) {
	spec, _ := m["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	metadata, _ := template["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if len(labels) == 0 {
		return
	}
	if spec["selector"] == nil {
		spec["selector"] = Copy(labels)
	}
	Complete(m, map[string]any{"metadata": map[string]any{"labels": labels}})
}

// completions makes a job without both fields run once.
func completions(m map[string]any, _ vocabulary.Vocabulary) {
	spec, _ := m["spec"].(map[string]any)
	if spec == nil {
		return
	}
	if spec["completions"] == nil && spec["parallelism"] == nil {
		spec["completions"] = int64(1)
	}
	if spec["parallelism"] == nil {
		spec["parallelism"] = int64(1)
	}
}

// jobSelector lets a job select its pods by its own uid, which it is given
// before it is prepared.
func jobSelector(m map[string]any, _ vocabulary.Vocabulary) {
	metadata, _ := m["metadata"].(map[string]any)
	spec, _ := m["spec"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	if uid == "" || spec == nil || spec["manualSelector"] == true {
		return
	}
	if spec["selector"] == nil {
		spec["selector"] = map[string]any{"matchLabels": map[string]any{"controller-uid": uid}}
		Complete(spec, map[string]any{"template": map[string]any{"metadata": map[string]any{
			"labels": map[string]any{"controller-uid": uid, "job-name": metadata["name"]}}}})
	}
}

// nameLabel labels a namespace with its name, for selectors.
func nameLabel(m map[string]any, v vocabulary.Vocabulary) {
	metadata, _ := m["metadata"].(map[string]any)
	if name, ok := metadata["name"].(string); ok && name != "" {
		Complete(metadata, map[string]any{"labels": map[string]any{}})
		if labels, ok := metadata["labels"].(map[string]any); ok {
			labels[v.Qualified("", "metadata.name")] = name
		}
	}
}

func roleGroup(m map[string]any, v vocabulary.Vocabulary) {
	reference, _ := m["roleRef"].(map[string]any)
	if reference != nil && Empty(reference["apiGroup"]) {
		reference["apiGroup"] = v.Group("rbac.authorization.")
	}
}

func subjectGroup(m map[string]any, v vocabulary.Vocabulary) {
	if !Empty(m["apiGroup"]) {
		return
	}
	switch m["kind"] {
	case "User", "Group":
		m["apiGroup"] = v.Group("rbac.authorization.")
	}
}

// policyTypes of a network policy: it always restricts what comes in.
func policyTypes(m map[string]any, _ vocabulary.Vocabulary) {
	if !Empty(m["policyTypes"]) {
		return
	}
	types := []any{"Ingress"}
	if egress, _ := m["egress"].([]any); len(egress) > 0 {
		types = append(types, "Egress")
	}
	m["policyTypes"] = types
}

// customNames completes the names of a custom resource type.
func customNames(m map[string]any, _ vocabulary.Vocabulary) {
	kind, _ := m["kind"].(string)
	if kind == "" {
		return
	}
	Complete(m, map[string]any{"singular": strings.ToLower(kind), "listKind": kind + "List"})
}

// limitDefaults derives the defaults of a limit range for containers: what is not
// given is taken from the stricter neighbour.
func limitDefaults(m map[string]any, _ vocabulary.Vocabulary) {
	if m["type"] != "Container" {
		return
	}
	for _, step := range [][2]string{{"default", "max"}, {"defaultRequest", "default"}, {"defaultRequest", "min"}} {
		from, _ := m[step[1]].(map[string]any)
		if len(from) > 0 {
			Complete(m, map[string]any{step[0]: from})
		}
	}
}

// oldSigner gives a request of the older version, which names no signer, the one
// that accepts anything.
func oldSigner(m map[string]any, v vocabulary.Vocabulary) {
	if Empty(m["signerName"]) {
		m["signerName"] = v.Signers.LegacyUnknown
	}
}
