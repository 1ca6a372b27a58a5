// Package resource holds what is common to all resource types: keys, names, revisions,
// selectors and the position of the resourceVersion in an object's JSON. It knows no
// types, versions or schemas, and does no I/O. It serves "Common object metadata" and
// "Path shapes" of the specification.
package resource

import (
	"errors"
	"fmt"
	"strings"
)

// GroupResource names a resource type independently of its versions.
type GroupResource struct {
	Group    string // empty for the core group
	Resource string // plural, as in paths
	// Custom is true for types that come from a CustomResourceDefinition. Their objects
	// have their own part of the key space: whatever names a definition chooses, its
	// objects are never read, written or deleted in place of those of a built-in type.
	Custom bool
}

// String returns resource or resource.group, followed by (custom) for custom types, so
// that they cannot be confused with built-in ones.
func (gr GroupResource) String() string {
	name := gr.Resource
	if gr.Group != "" {
		name += "." + gr.Group
	}
	if gr.Custom {
		name += " (custom)"
	}
	return name
}

// Key names one object. Namespace is empty for cluster-scoped types.
type Key struct {
	GroupResource
	Namespace string
	Name      string
}

// String returns the key for logs: resource.group namespace/name.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.GroupResource.String() + " " + k.Name
	}
	return k.GroupResource.String() + " " + k.Namespace + "/" + k.Name
}

// Root is the prefix of every object's path in etcd.
const Root = "/portico/objects/"

const (
	// coreGroup replaces the empty name of the core group in paths.
	coreGroup = "core"
	// customTree is the prefix of the paths of custom types, below Root. Group names
	// contain no underscore, so it is no group's name.
	customTree = "_custom/"
)

// Path returns the prefix of all objects of the type in etcd:
// <group>/<resource>/ below Root, and _custom/<group>/<resource>/ for custom types.
func (gr GroupResource) Path() string {
	switch {
	case gr.Custom:
		return Root + customTree + gr.Group + "/" + gr.Resource + "/"
	case gr.Group == "":
		return Root + coreGroup + "/" + gr.Resource + "/"
	}
	return Root + gr.Group + "/" + gr.Resource + "/"
}

// Path returns the object's key in etcd.
func (k Key) Path() string {
	if k.Namespace == "" {
		return k.GroupResource.Path() + k.Name
	}
	return k.GroupResource.Path() + k.Namespace + "/" + k.Name
}

// Check returns an error for a key without a resource or a name, and for one whose path
// would be invalid or that of another object.
func (k Key) Check() error {
	if k.Resource == "" || k.Name == "" {
		return errors.New("key has no resource or no name")
	}
	if strings.Contains(k.Group+k.Resource+k.Namespace+k.Name, "/") {
		return fmt.Errorf("%s: names must not contain a slash", k)
	}
	if k.Custom && k.Group == "" || strings.HasPrefix(k.Group, "_") || !k.Custom && k.Group == coreGroup {
		return fmt.Errorf("%s: no objects are stored under this group", k)
	}
	return nil
}

// ParsePath is the inverse of Key.Path.
func ParsePath(path string) (Key, error) {
	rest, ok := strings.CutPrefix(path, Root)
	rest, custom := strings.CutPrefix(rest, customTree)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 3 || len(parts) > 4 {
		return Key{}, fmt.Errorf("%q is not the path of an object", path)
	}
	k := Key{GroupResource: GroupResource{Group: parts[0], Resource: parts[1], Custom: custom}, Name: parts[len(parts)-1]}
	if !custom && k.Group == coreGroup {
		k.Group = ""
	}
	if len(parts) == 4 {
		k.Namespace = parts[2]
	}
	return k, nil
}
