package fieldmanager

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/fields"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/fieldmanager/recorded"
)

// untouched returns the fields that a write of the subresource does not change (package
// strategy), so that its manager does not become their owner; nil when there are none.
func untouched(t *catalogue.Type, subresource string) fields.Tree {
	switch {
	case t.Subresources["status"] == nil:
		return nil
	case subresource == "" && t.Behavior.SpecUnowned:
		return fields.Tree{"f:spec": fields.Tree{}, "f:status": fields.Tree{}}
	case subresource == "", subresource == "finalize":
		return fields.Tree{"f:status": fields.Tree{}}
	case subresource != "status" && subresource != "approval":
		return nil
	}
	left, metadata := fields.Tree{"f:spec": fields.Tree{}}, fields.Tree{}
	for _, name := range t.Behavior.StatusKeeps {
		metadata["f:"+name] = fields.Tree{}
	}
	if len(metadata) > 0 {
		left["f:metadata"] = metadata
	}
	if t.Schema() != nil {
		for name := range t.Schema().Properties {
			if name != "status" && name != "metadata" {
				left["f:"+name] = fields.Tree{}
			}
		}
	}
	return left
}

// identityFields are the fields of metadata that no manager owns.
var identityFields = []string{"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields", "resourceVersion"}

// unowned returns the fields that no manager owns: those that identify the object or are
// set by the server.
func unowned() fields.Tree {
	metadata := fields.Tree{".": fields.Tree{}}
	for _, name := range identityFields {
		metadata["f:"+name] = fields.Tree{}
	}
	return fields.Tree{"f:apiVersion": fields.Tree{}, "f:kind": fields.Tree{}, "f:metadata": metadata}
}

// setOf converts a tree to a set of the library.
func setOf(t fields.Tree) *fieldpath.Set {
	set := &fieldpath.Set{}
	_ = recorded.Decode(set, t) // names made by this package are valid
	return set
}
