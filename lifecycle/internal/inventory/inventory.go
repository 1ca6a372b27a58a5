// Package inventory discovers the resource types of the API, built-in and custom ones, in
// their preferred versions, and reports which part could not be discovered. It also lists
// and watches the metadata of objects of any type. It caches nothing: each Read calls the
// API. It serves "Versioning" and "Endpoints" of the specification.
package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/services/vocabulary"
)

// Type is one resource type in one version.
type Type struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	verbs      []string
}

// Can reports whether the type supports all of the verbs.
func (t *Type) Can(verbs ...string) bool {
	for _, verb := range verbs {
		if !slices.Contains(t.verbs, verb) {
			return false
		}
	}
	return true
}

// Inventory is the result of a discovery.
type Inventory struct {
	// Types has each type once, in its preferred version and its own group.
	Types []*Type
	// Stale are the group versions whose discovery the API reports as stale.
	Stale []schema.GroupVersion
	// Malformed are invalid names of group versions.
	Malformed []string

	kinds map[schema.GroupVersionKind]*Type
}

// Kind returns the type of a kind, in any served version; nil if there is none.
func (i *Inventory) Kind(kind schema.GroupVersionKind) *Type { return i.kinds[kind] }

// Source performs discovery, and follows the objects of the types in it.
type Source struct {
	client, objects rest.Interface
	// accept and metadata are the Accept headers for discovery and for objects.
	accept, metadata string
	// events is the group that serves the core group's events as well.
	events string
	// waiting has a value for each list and each start of a watch that is under way.
	waiting chan struct{}
}

// atOnce is how many lists and starts of watches are under way at a time. Each might open a connection: with thousands of
// types, a process that starts, or whose API was away, would otherwise use all its descriptors.
const atOnce = 8

// NewSource returns a source. It sends no request before the first Read.
func NewSource(config *rest.Config, names vocabulary.Vocabulary) (*Source, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
	if err != nil {
		return nil, err
	}
	group := names.Group("apidiscovery.")
	accept := fmt.Sprintf("application/json;g=%s;v=v2;as=APIGroupDiscoveryList", group)
	return &Source{client: client.RESTClient(), objects: objects, accept: accept, metadata: partial(names), events: names.Group("events."), waiting: make(chan struct{}, atOnce)}, nil
}

// Read performs discovery, with two requests.
func (s *Source) Read(ctx context.Context) (*Inventory, error) {
	i := &Inventory{kinds: map[schema.GroupVersionKind]*Type{}}
	for _, root := range []string{"/api", "/apis"} {
		body, err := s.client.Get().AbsPath(root).SetHeader("Accept", s.accept).Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("discovery: %s: %w", root, err)
		}
		var groups apidiscovery.APIGroupDiscoveryList
		if err := json.Unmarshal(body, &groups); err != nil {
			return nil, fmt.Errorf("discovery: %s: %w", root, err)
		}
		for _, group := range groups.Items {
			i.addGroup(group, group.Name == s.events || group.Name == extensions)
		}
	}
	return i, nil
}

// extensions is the legacy group of many types. The objects that it still serves are
// those of their current groups.
const extensions = "extensions"

// addGroup adds the types of a group. Its versions are in the order of preference. An
// alias serves objects of other groups: only its kinds are recorded.
func (i *Inventory) addGroup(group apidiscovery.APIGroupDiscovery, alias bool) {
	known := map[string]bool{}
	for _, version := range group.Versions {
		gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
		if parsed, err := schema.ParseGroupVersion(gv.String()); err != nil || parsed != gv || !segment(gv.Version) || gv.Group != "" && !segment(gv.Group) {
			i.Malformed = append(i.Malformed, gv.String())
			continue
		}
		if version.Freshness == apidiscovery.DiscoveryFreshnessStale {
			i.Stale = append(i.Stale, gv)
		}
		for _, r := range version.Resources {
			if !segment(r.Resource) {
				continue // its requests would be about something else
			}
			t := &Type{GroupVersionResource: gv.WithResource(r.Resource), Namespaced: r.Scope == apidiscovery.ScopeNamespace, verbs: r.Verbs}
			if r.ResponseKind != nil {
				t.Kind = r.ResponseKind.Kind
			}
			i.kinds[gv.WithKind(t.Kind)] = t
			if !known[r.Resource] && !alias {
				known[r.Resource] = true
				i.Types = append(i.Types, t)
			}
		}
	}
}

// segment reports whether a name is one segment of a path. Extensions of the API choose their names.
func segment(name string) bool {
	return name != "" && len(path.IsValidPathSegmentName(name)) == 0 && url.PathEscape(name) == name
}
