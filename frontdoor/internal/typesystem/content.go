package typesystem

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// Content returns what the store keeps of an object: its JSON in the stored version, and
// the labels and fields that selectors are evaluated on. raw is the object's JSON in the
// version of t.
func (e *Engine) Content(ctx context.Context, object map[string]any, raw []byte, t *catalogue.Type) (services.Content, error) {
	stored := object
	if t.Stored != t {
		if t.Custom {
			object = Copy(object)
		}
		var err error
		if stored, err = e.convert(ctx, object, t.Stored); err != nil {
			return services.Content{}, err
		}
		if t.Custom {
			e.Schemas.Complete(t.Stored, stored) // reads in the stored version need its defaults
		}
		raw = nil
	}
	meta := strategy.Metadata(stored)
	if _, ok := meta["resourceVersion"]; ok || raw == nil {
		delete(meta, "resourceVersion")
		var err error
		if raw, err = EncodeWhole(stored); err != nil {
			return services.Content{}, err
		}
	}
	uid, _ := meta["uid"].(string)
	labels, _, _ := unstructured.NestedStringMap(stored, "metadata", "labels")
	return services.Content{JSON: raw, UID: uid, Labels: labels, Fields: recordedFields(t.Stored, stored, raw)}, nil
}

// TakeManagedFields removes metadata.managedFields from an object and returns it.
func TakeManagedFields(object map[string]any) any {
	meta := strategy.Metadata(object)
	owners := meta["managedFields"]
	delete(meta, "managedFields")
	return owners
}

// EncodeWhole returns an object's JSON as it is stored: in the order of tree.Encode, except
// that managedFields comes first in the metadata.
func EncodeWhole(object map[string]any) ([]byte, error) {
	owners := TakeManagedFields(object)
	raw, err := tree.Encode(object)
	if owners != nil {
		strategy.Metadata(object)["managedFields"] = owners
	}
	if err != nil {
		return nil, err
	}
	return tree.WithManagedFields(raw, owners)
}
