package merge

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
)

// Reset undoes in c.New what the path of the request does not let a client
// change: the status through the resource itself, and through status everything
// but the status, annotations and finalizers. A type without a status subresource
// is left as it is.
func Reset(c Change) {
	if c.Type.Subresources["status"] == nil {
		return
	}
	switch c.Subresource {
	case "":
		restore(c.New, c.Live, "status")
	case "status":
		for name := range union(c.New, c.Live) {
			if name != "status" && name != "metadata" {
				restore(c.New, c.Live, name)
			}
		}
		fresh, _ := c.New["metadata"].(map[string]any)
		live, _ := c.Live["metadata"].(map[string]any)
		if fresh != nil {
			restore(fresh, live, "labels")
			restore(fresh, live, "ownerReferences")
		}
	}
}

// untouched returns the fields that nobody comes to own through the path of the
// request; nil when there are none.
func untouched(t *catalogue.Type, subresource string) *fieldpath.Set {
	switch {
	case t.Subresources["status"] == nil:
		return nil
	case subresource == "":
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	case subresource != "status":
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

// restore gives a member the value that it has in the live object.
func restore(object, live map[string]any, name string) {
	if value, ok := live[name]; ok {
		object[name] = deepCopy(value)
	} else {
		delete(object, name)
	}
}

func union(a, b map[string]any) map[string]bool {
	names := make(map[string]bool, len(a)+len(b))
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	return names
}
