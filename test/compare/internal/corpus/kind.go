package corpus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/portico-platform/portico/test/compare/internal/openapi"
)

// Kind is a type that both servers serve.
type Kind struct {
	openapi.Kind
	Plural       string
	Namespaced   bool
	Verbs        []string
	Subresources []string
	// minimal is the smallest manifest; full has many fields, or is nil.
	minimal, full object
}

// ID returns the name of the kind in reports: plural.version.group.
func (k *Kind) ID() string { return strings.TrimSuffix(k.Plural+"."+k.Version+"."+k.Group, ".") }

// Namespace returns the namespace of the objects in the cases of the kind.
func (k *Kind) Namespace() string { return "compare-" + k.Plural }

// GroupPath is the path of the kind's group and version.
func (k *Kind) GroupPath() string {
	if k.Group == "" {
		return "/api/" + k.Version
	}
	return "/apis/" + k.Group + "/" + k.Version
}

// collection returns the path at which objects are created.
func (k *Kind) collection() string {
	if k.Namespaced {
		return k.GroupPath() + "/namespaces/" + k.Namespace() + "/" + k.Plural
	}
	return k.GroupPath() + "/" + k.Plural
}

func (k *Kind) path(name string) string { return k.collection() + "/" + name }

// Stored reports whether objects of the kind are stored and can be read.
func (k *Kind) Stored() bool { return slices.Contains(k.Verbs, "get") }

func (k *Kind) creatable() bool { return slices.Contains(k.Verbs, "create") }

// name returns the name of the object of a case: the name in the manifest, if the kind
// requires a certain one.
func (k *Kind) name(proposed string) string {
	if fixed, ok := child(clone(k.minimal), "metadata")["name"].(string); ok {
		return fixed
	}
	return proposed
}

// nameable reports whether objects of the kind may have any name.
func (k *Kind) nameable() bool { return k.name("any") == "any" }

// named returns a case. Objects of a kind that requires a certain name, such as custom
// resource definitions, are changed by the servers, too, and so are FlowSchemas.
func (k *Kind) named(name string, steps []Step) Case {
	c := Case{Kind: k, Name: name, Steps: steps}
	if !k.nameable() || k.Kind.Kind == "FlowSchema" {
		c.Unstable = k.path(k.name(name))
	}
	return c
}

// object returns the minimal object with a name.
func (k *Kind) object(name string) object { return named(k.minimal, k.name(name)) }

// Discovered contains the discovery documents of a server by group and version: /api/v1
// and /apis/GROUP/VERSION.
type Discovered map[string][]byte

type resource struct {
	Name, Kind, Group, Version string
	Namespaced                 bool
	Verbs                      []string
}

// Kinds returns the kinds that both servers serve, and the names of those that only one of
// them serves.
func Kinds(portico, peer Discovered) (both []*Kind, onlyPortico, onlyPeer []string, err error) {
	ours, err := resources(portico)
	if err != nil {
		return nil, nil, nil, err
	}
	theirs, err := resources(peer)
	if err != nil {
		return nil, nil, nil, err
	}
	for id, k := range ours {
		other := theirs[id]
		if other == nil {
			onlyPortico = append(onlyPortico, id)
			continue
		}
		k.Subresources = slices.DeleteFunc(k.Subresources, func(s string) bool { return !slices.Contains(other.Subresources, s) })
		both = append(both, k)
	}
	for id := range theirs {
		if ours[id] == nil {
			onlyPeer = append(onlyPeer, id)
		}
	}
	slices.SortFunc(both, func(a, b *Kind) int { return strings.Compare(a.Group+" "+a.ID(), b.Group+" "+b.ID()) })
	slices.Sort(onlyPortico)
	slices.Sort(onlyPeer)
	return both, onlyPortico, onlyPeer, nil
}

func resources(found Discovered) (map[string]*Kind, error) {
	all := map[string]*Kind{}
	subresources := map[string][]string{}
	for path, content := range found {
		var list struct{ Resources []resource }
		if err := json.Unmarshal(content, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		group, version := "", strings.TrimPrefix(path, "/api/")
		if rest, ok := strings.CutPrefix(path, "/apis/"); ok {
			group, version, _ = strings.Cut(rest, "/")
		}
		for _, r := range list.Resources {
			k := &Kind{Kind: openapi.Kind{Group: group, Version: version, Kind: r.Kind}, Plural: r.Name, Namespaced: r.Namespaced, Verbs: r.Verbs}
			if plural, sub, ok := strings.Cut(r.Name, "/"); ok {
				k.Plural = plural
				subresources[k.ID()] = append(subresources[k.ID()], sub)
				continue
			}
			all[k.ID()] = k
		}
	}
	for id, subs := range subresources {
		if k := all[id]; k != nil {
			slices.Sort(subs)
			k.Subresources = subs
		}
	}
	return all, nil
}
