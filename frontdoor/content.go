package frontdoor

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// content returns what is stored of an object: its JSON in the stored version, and
// what selectors are evaluated on. raw is the object's JSON in the version of t.
func (d *door) content(object map[string]any, raw []byte, t *catalogue.Type) (services.Content, error) {
	stored := object
	if t.Stored != t {
		var err error
		if stored, err = d.versions.Convert(object, t.Stored); err != nil {
			return services.Content{}, err
		}
		raw = nil
	}
	meta := strategy.Metadata(stored)
	if _, ok := meta["resourceVersion"]; ok || raw == nil {
		delete(meta, "resourceVersion")
		var err error
		if raw, err = encodeObject(stored); err != nil {
			return services.Content{}, err
		}
	}
	uid, _ := meta["uid"].(string)
	labels, _, _ := unstructured.NestedStringMap(stored, "metadata", "labels")
	return services.Content{JSON: raw, UID: uid, Labels: labels, Fields: selectableFields(t.Stored, stored)}, nil
}

// withVersion returns the JSON of an object with the current version in its place.
func (c *change) withVersion(raw []byte) []byte {
	at, err := resource.MetadataOffset(raw)
	if err != nil {
		return raw
	}
	return resource.SpliceVersion(raw, at, c.current.Revision)
}
