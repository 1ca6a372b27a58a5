package review

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// collectionFields are the metadata that the garbage collector writes and that the
// service itself maintains. None of them can change a decision of authorization.
func collectionFields() []string {
	return []string{"finalizers", "ownerReferences", "managedFields", "selfLink", "resourceVersion", "generation",
		"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"}
}

// SameButForCollection reports whether two versions of an object differ in nothing but
// collectionFields. Such an update is always allowed, so that objects can be collected
// on behalf of users who could not have created them.
func SameButForCollection(object, old []byte) (bool, error) {
	var compared [2]map[string]any
	for i, raw := range [][]byte{object, old} {
		decoded, err := tree.Decode(raw)
		if err != nil {
			return false, services.BadRequest("the object is not JSON: %v", err)
		}
		metadata := tree.Object(decoded, "metadata")
		for _, field := range collectionFields() {
			delete(metadata, field)
		}
		compared[i] = decoded
	}
	return equality.Semantic.DeepEqual(compared[0], compared[1]), nil
}
