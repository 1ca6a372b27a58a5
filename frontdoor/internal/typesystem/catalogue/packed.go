package catalogue

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

//go:generate go run ./published/generate

// The types of releases, as package published packs them.
var (
	//go:embed packed/1.21.txt
	packed121 string
	//go:embed packed/1.36.txt
	packed136 string

	packed = map[string]string{release.V121.String(): packed121, release.V136.String(): packed136}
)

// builtInTypes are the types of a release, those that the suite adds among them.
type builtInTypes struct {
	types       []*Type
	definitions Definitions
	bodies      map[kindID]string // definition names
}

// unpack returns the types of a release with the names of the vocabulary. It decodes no
// schema.
func unpack(r release.Release, v vocabulary.Vocabulary) (*builtInTypes, error) {
	text := packed[r.String()]
	if text == "" {
		return nil, fmt.Errorf("release %s has no types", r)
	}
	names := newOriginalNames(v)
	types, text, _ := strings.Cut(text, "\n")
	kinds, text, _ := strings.Cut(text, "\n")
	found := &builtInTypes{definitions: Definitions{}, bodies: map[kindID]string{}}
	if err := json.Unmarshal([]byte(types), &found.types); err != nil {
		return nil, fmt.Errorf("the types of %s: %w", r, err)
	}
	for _, t := range found.types {
		t.Group = names.group(t.Group)
		if t.Subresources == nil {
			t.Subresources = map[string]*Subresource{} // readKinds adds more
		}
		for _, sub := range t.Subresources {
			if sub.Version != "" {
				sub.Group = names.group(sub.Group)
			}
		}
	}
	var byDefinition map[string][]kindID
	if err := json.Unmarshal([]byte(kinds), &byDefinition); err != nil {
		return nil, fmt.Errorf("the kinds of %s: %w", r, err)
	}
	for name, ids := range byDefinition {
		for _, id := range ids {
			id.Group = names.group(id.Group)
			found.bodies[id] = names.definition(name)
		}
	}
	for line := range strings.Lines(text) {
		name, schema, _ := strings.Cut(line, " ")
		found.definitions[names.definition(name)] = &Definition{packed: schema, names: names}
	}
	return found, nil
}

// Resources returns the groups and resources under which a release stores objects, those
// that the suite adds among them. It builds no catalogue.
func Resources(o Options) ([]resource.GroupResource, error) {
	builtIn, err := unpack(o.Release, o.Vocabulary)
	if err != nil {
		return nil, err
	}
	described, err := readKinds(o)
	if err != nil {
		return nil, err
	}
	if err := described.complete(builtIn.types); err != nil {
		return nil, err
	}
	found := map[resource.GroupResource]bool{}
	for _, t := range builtIn.types {
		if !t.Virtual {
			found[t.Key] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b resource.GroupResource) int { return strings.Compare(a.String(), b.String()) }), nil
}
