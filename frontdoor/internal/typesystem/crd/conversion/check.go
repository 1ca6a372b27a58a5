package conversion

import (
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/services/tree"
)

// object is an object in a response; its integers are int64.
type object map[string]any

// UnmarshalJSON implements json.Unmarshaler.
func (o *object) UnmarshalJSON(raw []byte) (err error) {
	*o, err = tree.Decode(raw)
	return err
}

// checkReply checks that a converted object is the one that was sent, in the requested
// version.
func checkReply(sent, found map[string]any, apiVersion string) error {
	if found["apiVersion"] != apiVersion {
		return fmt.Errorf("invalid groupVersion (expected %v, received %v)", apiVersion, found["apiVersion"])
	}
	if found["kind"] != sent["kind"] {
		return fmt.Errorf("invalid kind (expected %v, received %v)", sent["kind"], found["kind"])
	}
	before, after := metadata(sent), metadata(found)
	for _, f := range []struct{ field, called string }{{"name", "name"}, {"namespace", "namespace"}, {"uid", "UID"}} {
		if before[f.field] != after[f.field] {
			return fmt.Errorf("must have the same %s: %v != %v", f.called, before[f.field], after[f.field])
		}
	}
	return nil
}

func metadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return m
}

// withMetadata returns the converted object with the metadata that was sent, except for
// labels and annotations, which the webhook may change.
func withMetadata(found, sent map[string]any) (map[string]any, error) {
	received, ok := found["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("missing metadata in converted object")
	}
	meta := maps.Clone(metadata(sent))
	for _, name := range []string{"labels", "annotations"} {
		delete(meta, name)
		values, err := texts(received[name], name)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			meta[name] = received[name]
		}
		at := field.NewPath("metadata", name)
		errs := metav1validation.ValidateLabels(values, at)
		if name == "annotations" {
			errs = validation.ValidateAnnotations(values, at)
		}
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
	}
	next := maps.Clone(found)
	next["metadata"] = meta
	return next, nil
}

// texts converts a map of strings; name is the field for errors.
func texts(value any, name string) (map[string]string, error) {
	if value == nil {
		return nil, nil
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	found := make(map[string]string, len(m))
	for key, item := range m {
		text, ok := item.(string)
		if !ok {
			return nil, fmt.Errorf("invalid metadata.%s[%s] of type %T in converted object", name, key, item)
		}
		found[key] = text
	}
	return found, nil
}
