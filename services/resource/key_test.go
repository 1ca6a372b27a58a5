package resource_test

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/resource"
)

func TestPathsAndKeys(t *testing.T) {
	custom := resource.GroupResource{Group: "example.com", Resource: "widgets", Custom: true}
	for path, key := range map[string]resource.Key{
		"/portico/objects/core/pods/default/a":                  {GroupResource: resource.GroupResource{Resource: "pods"}, Namespace: "default", Name: "a"},
		"/portico/objects/core/nodes/a":                         {GroupResource: resource.GroupResource{Resource: "nodes"}, Name: "a"},
		"/portico/objects/apps/deployments/default/a":           {GroupResource: resource.GroupResource{Group: "apps", Resource: "deployments"}, Namespace: "default", Name: "a"},
		"/portico/objects/example.com/widgets/a":                {GroupResource: resource.GroupResource{Group: "example.com", Resource: "widgets"}, Name: "a"},
		"/portico/objects/_custom/example.com/widgets/a":        {GroupResource: custom, Name: "a"},
		"/portico/objects/_custom/example.com/widgets/ns/a":     {GroupResource: custom, Namespace: "ns", Name: "a"},
		"/portico/objects/_custom/core/widgets/ns/a":            {GroupResource: resource.GroupResource{Group: "core", Resource: "widgets", Custom: true}, Namespace: "ns", Name: "a"},
		"/portico/objects/_custom/custom.example.com/core/ns/a": {GroupResource: resource.GroupResource{Group: "custom.example.com", Resource: "core", Custom: true}, Namespace: "ns", Name: "a"},
	} {
		if got := key.Path(); got != path || key.Check() != nil {
			t.Errorf("the path of %s is %s, %v; want %s", key, got, key.Check(), path)
		}
		if got, err := resource.ParsePath(path); err != nil || got != key {
			t.Errorf("%s is the path of %s, %v; want %s", path, got, err, key)
		}
	}
	for _, path := range []string{"", "/portico/objects/", "/portico/objects/a/b", "/portico/objects/a/b/c/d/e",
		"/portico/objects/_custom/a/b", "/portico/objects/_custom/a/b/c/d/e", "/elsewhere/a/b/c"} {
		if key, err := resource.ParsePath(path); err == nil {
			t.Errorf("%s passes for the path of %s", path, key)
		}
	}
}

// Two valid keys never share a path, and no prefix of a type covers an object of
// another.
func FuzzKeys(f *testing.F) {
	f.Add("_custom", "example.com", "widgets", "a", false)
	f.Add("core", "pods", "default", "a", false)
	f.Add("", "pods", "default", "a", true)
	f.Add("example.com", "widgets", "", "a", true)
	f.Fuzz(func(t *testing.T, group, plural, namespace, name string, custom bool) {
		key := resource.Key{GroupResource: resource.GroupResource{Group: group, Resource: plural, Custom: custom}, Namespace: namespace, Name: name}
		if key.Check() != nil {
			return
		}
		if got, err := resource.ParsePath(key.Path()); err != nil || got != key {
			t.Errorf("%q is the path of %+v, %v; want %+v", key.Path(), got, err, key)
		}
		other := key.GroupResource
		other.Custom = !custom
		if strings.HasPrefix(key.Path(), other.Path()) {
			t.Errorf("%q is below %q", key.Path(), other.Path())
		}
	})
}
