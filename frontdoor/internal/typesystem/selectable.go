package typesystem

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
)

// contentField is recorded with objects whose field values are not: a digest of the object. It is not a path,
// so no selectable field has this name.
const contentField = "(content)"

// maxRecorded is the size of the longest value that is recorded, in bytes.
const maxRecorded = 256

// recordedFields returns the fields that are stored with an object in its stored version. Selectors of built-in
// types are evaluated on them. Those of a custom type may be older than the definition, or differ from the
// fields in another version, so selectors are evaluated on FieldsOf. If two states of an object differ in a
// selectable field of some version, so do their recorded fields: the hub then keeps the former state in the
// change.
func recordedFields(t *catalogue.Type, object map[string]any, raw []byte) map[string]string {
	if !t.Custom {
		return selectableFields(t, object)
	}
	var fields map[string]string
	for _, version := range append([]*catalogue.Type{t}, siblings(t)...) {
		for name, value := range selectableFields(version, object) {
			if t.Webhook != nil || len(value) > maxRecorded {
				digest := sha256.Sum256(raw)
				return map[string]string{contentField: base64.RawStdEncoding.EncodeToString(digest[:])}
			}
			if fields == nil {
				fields = map[string]string{}
			}
			fields[name] = value
		}
		for _, f := range version.Selectable {
			if _, ok, _ := unstructured.NestedFieldNoCopy(object, f.Path...); !ok && fields != nil {
				fields["("+f.Name+")"] = "absent" // and not "", which no later default replaces
			}
		}
	}
	return fields
}

func siblings(t *catalogue.Type) (list []*catalogue.Type) {
	for _, version := range t.Siblings {
		list = append(list, version)
	}
	return list
}

// selectableFields returns the values of a type's selectable fields.
func selectableFields(t *catalogue.Type, object map[string]any) map[string]string {
	if len(t.Selectable) == 0 {
		return nil
	}
	fields := make(map[string]string, len(t.Selectable))
	for _, f := range t.Selectable {
		value, _, _ := unstructured.NestedFieldNoCopy(object, f.Path...)
		if f.Or != nil && (value == nil || value == "") {
			value, _, _ = unstructured.NestedFieldNoCopy(object, f.Or...)
		}
		if value == nil || value == "" {
			value = f.Default
		}
		fields[f.Name] = fmt.Sprint(value)
	}
	return fields
}

// FieldsOf returns the values of the selectable fields of stored objects of a custom type,
// as they are in the version of the type. It uses the recorded ones where they are certain,
// and else reads the objects, which calls a conversion webhook once. It does not modify the
// objects.
func (e *Engine) FieldsOf(ctx context.Context, objects []services.Object, t *catalogue.Type) ([]map[string]string, error) {
	values := make([]map[string]string, len(objects))
	var others []services.Object
	var at []int
	for i, o := range objects {
		if t.Webhook == nil && o.Revision >= t.Since && records(o.Fields, t) {
			values[i] = o.Fields
			continue
		}
		others, at = append(others, o), append(at, i)
	}
	views, err := e.Views(ctx, others, t)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		object, err := tree.Decode(views[n].JSON)
		if err != nil {
			return nil, err
		}
		values[i] = selectableFields(t, object)
	}
	return values, nil
}

// RecordsChanges reports whether a change of a selectable field of an object with these
// recorded fields would have changed these, in the version of a custom type.
func RecordsChanges(recorded map[string]string, t *catalogue.Type) bool {
	return recorded[contentField] != "" || t.Webhook == nil && records(recorded, t)
}

// records reports whether fields has all selectable fields of a type.
func records(fields map[string]string, t *catalogue.Type) bool {
	for _, f := range t.Selectable {
		if _, ok := fields[f.Name]; !ok {
			return false
		}
	}
	return true
}
