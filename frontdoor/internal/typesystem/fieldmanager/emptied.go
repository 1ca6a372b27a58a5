package fieldmanager

import "sigs.k8s.io/structured-merge-diff/v6/fieldpath"

// othersOf returns the fields that managers own through other versions than this one.
func othersOf(fields fieldpath.ManagedFields, apiVersion string) *fieldpath.Set {
	others := fieldpath.NewSet()
	for _, each := range fields {
		if string(each.APIVersion()) != apiVersion {
			others = others.Union(each.Set())
		}
	}
	return others
}

// keepEmptied puts back, in place, the empty objects that a manager applies and that merging made null
// because it found nothing else in them, where others own fields through another version: for them the
// object is not empty. Elsewhere null stays, as in Kubernetes, and validation refuses it.
func keepEmptied(object, config map[string]any, others *fieldpath.Set) {
	if others.Empty() {
		return
	}
	for name, applied := range config {
		below, isObject := applied.(map[string]any)
		value, exists := object[name]
		if !isObject || !exists {
			continue
		}
		owned := others.WithPrefix(fieldpath.PathElement{FieldName: &name})
		switch v := value.(type) {
		case map[string]any:
			keepEmptied(v, below, owned)
		case nil:
			if !owned.Empty() {
				object[name] = copyOf(below)
			}
		}
	}
}
