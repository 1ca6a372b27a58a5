//go:build generated

package main

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"k8s.io/gengo/v2"
	"k8s.io/gengo/v2/namer"
	"k8s.io/gengo/v2/parser"
	"k8s.io/gengo/v2/types"

	"github.com/portico-platform/portico/tools/release/manifest"
)

// resource is a resource type in one group version.
type resource struct {
	group, version, kind, plural string
	namespaced                   bool
	verbs                        []string
	subresources                 map[string]subresource
	definition                   string
}

type subresource struct {
	group, version, kind string
	verbs                []string
	connect              bool
}

// gates are the feature gates of fields, by definition and JSON name.
type gates map[string]map[string][]string

// all are the verbs of a type that has no others.
var all = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// parse returns the resource types and the gated fields of the packages.
func parse(m manifest.Manifest) ([]*resource, gates, error) {
	p := parser.New()
	if err := p.LoadPackages(append(m.All(), m.Shared...)...); err != nil {
		return nil, nil, err
	}
	universe, err := p.NewUniverse()
	if err != nil {
		return nil, nil, err
	}
	plurals := map[string]string{}
	for kind, plural := range m.Plurals {
		plurals[kind] = strings.ToUpper(plural[:1]) + plural[1:]
	}
	plural := namer.NewAllLowercasePluralNamer(plurals)
	var found []*resource
	gated := gates{}
	for _, name := range m.All() {
		pkg := universe[name]
		if pkg == nil || len(pkg.Types) == 0 {
			return nil, nil, fmt.Errorf("no package %s", name)
		}
		group := path.Base(path.Dir(name))
		if given, ok := gengo.ExtractCommentTags("+", pkg.Comments)["groupName"]; ok {
			group = first(given)
		}
		for _, typeName := range slices.Sorted(maps.Keys(pkg.Types)) {
			t := pkg.Types[typeName]
			if t.Kind != types.Struct {
				continue
			}
			gated.add(definitionOf(name, typeName), t, m.Gates)
			r := resourceOf(t, m)
			if only := m.Optional[name]; r == nil || only != nil && !slices.Contains(only, typeName) {
				continue
			}
			r.group, r.version, r.kind, r.plural, r.definition = group, path.Base(name), typeName, plural.Name(t), definitionOf(name, typeName)
			if err := r.addSubresources(t, m); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", r.definition, err)
			}
			found = append(found, r)
		}
	}
	return found, gated, nil
}

// resourceOf returns the scope and verbs of a type; nil if it is no resource.
func resourceOf(t *types.Type, m manifest.Manifest) *resource {
	tags := tagsOf(t)
	if given, ok := m.Types[short(t)]; ok {
		return &resource{namespaced: given.Namespaced, verbs: given.Verbs, subresources: map[string]subresource{}}
	}
	if _, ok := tags["genclient"]; !ok {
		return nil
	}
	if _, ok := tags["genclient:noVerbs"]; ok && len(tags["genclient:method"]) == 0 {
		return nil
	}
	r := &resource{verbs: all, subresources: map[string]subresource{}}
	_, cluster := tags["genclient:nonNamespaced"]
	r.namespaced = !cluster
	if only := first(tags["genclient:onlyVerbs"]); only != "" {
		r.verbs = strings.Split(only, ",")
	}
	if skip := first(tags["genclient:skipVerbs"]); skip != "" {
		r.verbs = slices.DeleteFunc(slices.Clone(all), func(v string) bool { return slices.Contains(strings.Split(strings.ToLower(skip), ","), v) })
	}
	return r
}

// addSubresources adds the status, the subresources of the client's methods, and those of
// the file.
func (r *resource) addSubresources(t *types.Type, m manifest.Manifest) error {
	own := subresource{r.group, r.version, r.kind, []string{"get", "patch", "update"}, false}
	tags := tagsOf(t)
	_, without := tags["genclient:noStatus"]
	if hasField(t, "Status") && !without && len(r.verbs) > 1 {
		r.subresources["status"] = own
	}
	for _, method := range tags["genclient:method"] {
		var verb, name, input string
		for _, part := range strings.Split(method, ",") {
			key, value, _ := strings.Cut(part, "=")
			switch key {
			case "verb":
				verb = value
			case "subresource":
				name = value
			case "input":
				input = value
			}
		}
		switch {
		case verb == "create":
			s, err := bodyOf(input, r)
			if err != nil {
				return err
			}
			s.verbs = []string{"create"}
			r.subresources[name] = s
		case name == "scale":
			r.subresources[name] = subresource{"autoscaling", "v1", "Scale", own.verbs, false}
		case name != "":
			r.subresources[name] = own
		}
	}
	for name, given := range m.Subresources[short(t)] {
		s := subresource{r.group, r.version, given.Kind, append(slices.Clone(given.Verbs), given.Connect...), len(given.Connect) > 0}
		if version, kind, other := strings.Cut(given.Kind, " "); other {
			s.kind = kind
			s.group, s.version = path.Dir(version), path.Base(version)
		}
		r.subresources[name] = s
	}
	return nil
}

// bodyOf returns the kind of a body by its Go type.
func bodyOf(goType string, r *resource) (subresource, error) {
	i := strings.LastIndex(goType, ".")
	if i < 0 {
		return subresource{group: r.group, version: r.version, kind: goType}, nil
	}
	group := groups[goType[:i]]
	if group == "" {
		return subresource{}, fmt.Errorf("unknown package of %s", goType)
	}
	return subresource{group: group, version: path.Base(goType[:i]), kind: goType[i+1:]}, nil
}

// groups are the groups of packages that have bodies of subresources of other groups.
var groups = map[string]string{"k8s.io/api/authentication/v1": "authentication.k8s.io"}

// add adds the gated fields of a type.
func (g gates) add(definition string, t *types.Type, renamed map[string]string) {
	for _, member := range t.Members {
		names := gengo.ExtractCommentTags("+", member.CommentLines)["featureGate"]
		field, _, _ := strings.Cut(reflect.StructTag(member.Tags).Get("json"), ",")
		if len(names) == 0 || field == "" {
			continue
		}
		if g[definition] == nil {
			g[definition] = map[string][]string{}
		}
		for _, name := range names {
			for gate := range strings.SplitSeq(strings.TrimSpace(name), ",") {
				g[definition][field] = append(g[definition][field], cmp.Or(renamed[gate], gate))
			}
		}
	}
}

func tagsOf(t *types.Type) map[string][]string {
	return gengo.ExtractCommentTags("+", append(slices.Clone(t.SecondClosestCommentLines), t.CommentLines...))
}

func hasField(t *types.Type, name string) bool {
	return slices.ContainsFunc(t.Members, func(m types.Member) bool { return m.Name == name })
}

// short returns the last parts of a type's definition name.
func short(t *types.Type) string {
	return path.Base(path.Dir(t.Name.Package)) + "." + path.Base(t.Name.Package) + "." + t.Name.Name
}

// definitionOf returns the definition name of a Go type.
func definitionOf(pkg, name string) string {
	parts := strings.Split(pkg, "/")
	host := strings.Split(parts[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, parts[1:]...), name), ".")
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.TrimSpace(list[0])
}
