// Package resource holds what every service knows about any resource, whatever
// its type: keys, names, revisions, selectors and where the resourceVersion
// stands in an object's JSON. It does not know types, versions or schemas, and
// it does no I/O. It serves "Common object metadata" and "Path shapes" of the
// specification.
package resource

import (
	"fmt"
	"strings"
)

// GroupResource names a resource type independently of its versions.
type GroupResource struct {
	Group    string // empty for the core group
	Resource string // plural, as in paths
}

// String returns resource or resource.group.
func (gr GroupResource) String() string {
	if gr.Group == "" {
		return gr.Resource
	}
	return gr.Resource + "." + gr.Group
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

// Path returns the prefix of all objects of the type in etcd.
func (gr GroupResource) Path() string {
	group := gr.Group
	if group == "" {
		group = "core"
	}
	return Root + group + "/" + gr.Resource + "/"
}

// Path returns the object's key in etcd.
func (k Key) Path() string {
	if k.Namespace == "" {
		return k.GroupResource.Path() + k.Name
	}
	return k.GroupResource.Path() + k.Namespace + "/" + k.Name
}

// ParsePath is the inverse of Key.Path.
func ParsePath(path string) (Key, error) {
	rest, ok := strings.CutPrefix(path, Root)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) < 3 || len(parts) > 4 {
		return Key{}, fmt.Errorf("%q is not the path of an object", path)
	}
	k := Key{GroupResource: GroupResource{Group: parts[0], Resource: parts[1]}, Name: parts[len(parts)-1]}
	if k.Group == "core" {
		k.Group = ""
	}
	if len(parts) == 4 {
		k.Namespace = parts[2]
	}
	return k, nil
}
