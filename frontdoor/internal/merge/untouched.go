package merge

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
)

// untouched returns the fields that a write through the path of the request leaves
// alone (package strategy), so that nobody comes to own them; nil when there are
// none.
func untouched(t *catalogue.Type, subresource string) *fieldpath.Set {
	switch {
	case t.Subresources["status"] == nil:
		return nil
	case subresource == "":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case subresource != "status" && subresource != "approval":
		return nil
	}
	set := fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "labels"), fieldpath.MakePathOrDie("metadata", "ownerReferences"))
	if t.Schema != nil {
		for name := range t.Schema.Properties {
			if name != "status" && name != "metadata" {
				set.Insert(fieldpath.MakePathOrDie(name))
			}
		}
	}
	set.Insert(fieldpath.MakePathOrDie("spec"))
	return set
}
