package bootstrap

import (
	_ "embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

//go:generate go run ../typesystem/datafiles/generate packed.txt policy/*.yaml fairness.yaml

//go:embed packed.txt
var packed string

// entry is one role of the policy and its subjects. In the files, API groups have the
// short names of package vocabulary, and other names that differ between vocabularies
// are in angle brackets.
type entry struct {
	Role string `json:"role"`
	// In is the namespace of a Role; empty for a ClusterRole.
	In string `json:"in"`
	// To lists the subjects: "group <name>", "user <name>", or "account <name>" for a
	// service account of the system namespace.
	To []string `json:"to"`
	// Also are further subjects, of some releases only.
	Also further `json:"also"`
	// Binding is the name of the binding if it differs from the role's. A named binding
	// exists even without subjects.
	Binding string `json:"binding"`
	// Gathers is the label by which the role aggregates others; PartOf are such labels
	// on this role.
	Gathers string   `json:"gathers"`
	PartOf  []string `json:"partOf"`
	Rules   []rule   `json:"rules"`
	lifetime
}

// lifetime holds the first release that has a role, a rule or further subjects, and the first
// one without them; "" for all of them. Feature is the feature gate without which they are not
// there; "" for none.
type lifetime struct {
	Since   string `json:"since"`
	Until   string `json:"until"`
	Feature string `json:"feature"`
}

// target is what the policy is made for.
type target struct {
	release release.Release
	on      func(feature string) bool
}

// in reports whether there is the role or the rule. An error is a mistake in a file.
func (l lifetime) in(t target) (bool, error) {
	if l.Feature != "" && (t.on == nil || !t.on(l.Feature)) {
		return false, nil
	}
	for _, bound := range []struct {
		name string
		has  bool
	}{{l.Since, true}, {l.Until, false}} {
		if bound.name == "" {
			continue
		}
		named, err := release.Of(bound.name)
		if err != nil {
			return false, err
		}
		if t.release.Before(named) == bound.has {
			return false, nil
		}
	}
	return true, nil
}

type further struct {
	To []string `json:"to"`
	lifetime
}

type rule struct {
	Groups    []string `json:"groups"`
	Resources []string `json:"resources"`
	Names     []string `json:"names"`
	Paths     []string `json:"paths"`
	Verbs     []string `json:"verbs"`
	lifetime
}

// of returns the entry as a release has it; nil if the release does not have it.
func (e *entry) of(t target) (*entry, error) {
	has, err := e.in(t)
	if err != nil || !has {
		return nil, err
	}
	own := *e
	own.Rules = nil
	if has, err = e.Also.in(t); err != nil {
		return nil, err
	}
	if has {
		own.To = slices.Concat(e.To, e.Also.To)
	}
	for _, rule := range e.Rules {
		has, err := rule.in(t)
		if err != nil {
			return nil, err
		}
		if has {
			own.Rules = append(own.Rules, rule)
		}
	}
	return &own, nil
}

// policy returns all roles and then all bindings.
func policy(v vocabulary.Vocabulary, t target) ([]map[string]any, error) {
	names := resolver(v)
	var roles, bindings []map[string]any
	for file, content := range datafiles.Files(packed) {
		if file == fairness {
			continue
		}
		var entries []entry
		if err := datafiles.Decode(names.Replace(content), &entries); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range entries {
			e, err := entries[i].of(t)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, entries[i].Role, err)
			}
			if e == nil {
				continue
			}
			roles = append(roles, e.object(v))
			if len(e.To) == 0 && e.Binding == "" {
				continue
			}
			binding, err := e.binding(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", file, e.Role, err)
			}
			bindings = append(bindings, binding)
		}
	}
	return append(roles, bindings...), nil
}

// resolver replaces angle brackets with the names of a vocabulary.
func resolver(v vocabulary.Vocabulary) *strings.Replacer {
	pairs := []string{"<prefix>", v.Namespace(""), "<system>", v.Namespace("system"), "<public>", v.Namespace("public"),
		"<certificates>", v.Group("certificates."), "<agent>", v.NodeAgent, "<domain>", v.Domain}
	for name, signer := range map[string]string{"client": v.Signers.Client, "node-client": v.Signers.NodeClient,
		"node-serving": v.Signers.NodeServing, "legacy-unknown": v.Signers.LegacyUnknown} {
		pairs = append(pairs, "<signer-"+name+">", signer, "<"+name+">", path.Base(signer))
	}
	return strings.NewReplacer(pairs...)
}

// object returns the Role or ClusterRole of an entry.
func (e *entry) object(v vocabulary.Vocabulary) map[string]any {
	role := e.frame(v, "Role")
	labels := role["metadata"].(map[string]any)["labels"].(map[string]any)
	for _, part := range e.PartOf {
		labels[aggregateTo(v, part)] = "true"
	}
	if e.Gathers != "" {
		role["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{
			map[string]any{"matchLabels": map[string]any{aggregateTo(v, e.Gathers): "true"}},
		}}
	}
	rules := make([]any, len(e.Rules))
	for i, r := range e.Rules {
		rules[i] = r.object(v)
	}
	role["rules"] = rules
	return role
}

func (r *rule) object(v vocabulary.Vocabulary) map[string]any {
	groups := make([]string, len(r.Groups))
	for i, short := range r.Groups {
		groups[i] = v.Group(short)
	}
	object := map[string]any{}
	for name, list := range map[string][]string{
		"apiGroups": groups, "resources": r.Resources, "resourceNames": r.Names, "nonResourceURLs": r.Paths, "verbs": r.Verbs,
	} {
		if len(list) > 0 {
			object[name] = anys(list)
		}
	}
	return object
}

// binding returns the RoleBinding or ClusterRoleBinding of an entry.
func (e *entry) binding(v vocabulary.Vocabulary) (map[string]any, error) {
	binding := e.frame(v, "RoleBinding")
	if e.Binding != "" {
		binding["metadata"].(map[string]any)["name"] = e.Binding
	}
	kind := "ClusterRole"
	if e.In != "" {
		kind = "Role"
	}
	group := v.Group("rbac.authorization.")
	binding["roleRef"] = map[string]any{"apiGroup": group, "kind": kind, "name": e.Role}
	subjects := make([]any, len(e.To))
	for i, holder := range e.To {
		switch what, name, _ := strings.Cut(holder, " "); what {
		case "group":
			subjects[i] = map[string]any{"apiGroup": group, "kind": "Group", "name": name}
		case "user":
			subjects[i] = map[string]any{"apiGroup": group, "kind": "User", "name": name}
		case "account":
			subjects[i] = map[string]any{"kind": "ServiceAccount", "name": name, "namespace": v.Namespace("system")}
		default:
			return nil, fmt.Errorf("holder %q is neither group, user nor account", holder)
		}
	}
	if len(subjects) > 0 {
		binding["subjects"] = subjects
	}
	return binding, nil
}

// frame returns an object with the metadata that roles and bindings share.
func (e *entry) frame(v vocabulary.Vocabulary, kind string) map[string]any {
	metadata := map[string]any{
		"name":        e.Role,
		"labels":      map[string]any{v.Qualified("", "bootstrapping"): "rbac-defaults"},
		"annotations": map[string]any{v.Qualified("rbac.authorization", "autoupdate"): "true"},
	}
	if e.In == "" {
		kind = "Cluster" + kind
	} else {
		metadata["namespace"] = e.In
	}
	return map[string]any{"apiVersion": v.Group("rbac.authorization.") + "/v1", "kind": kind, "metadata": metadata}
}

func aggregateTo(v vocabulary.Vocabulary, role string) string {
	return v.Group("rbac.authorization.") + "/aggregate-to-" + role
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
