package strategy

import (
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// identityFields are the metadata fields that a write reads before the schema is checked:
// a value of a wrong type must not count as absent.
func identityFields() []string {
	return []string{"name", "generateName", "namespace", "uid", "resourceVersion"}
}

// WrongIdentity returns what is wrong with metadata that is not an object, or with an
// identity field that is not a string. It returns "" if nothing is wrong.
func WrongIdentity(object map[string]any) string {
	switch meta := object["metadata"].(type) {
	case nil:
	case map[string]any:
		for _, name := range identityFields() {
			if _, text := meta[name].(string); !text && meta[name] != nil {
				return "metadata." + name + ": expected a string"
			}
		}
	default:
		return "metadata: expected an object"
	}
	return ""
}

// CheckIdentity returns BadRequest (400) if WrongIdentity finds something in a body of a type.
func CheckIdentity(object map[string]any, t *catalogue.Type) error {
	if why := WrongIdentity(object); why != "" {
		return services.BadRequest("%s in version %q cannot be handled as a %s: %s", t.Kind, t.Version, t.Kind, why)
	}
	return nil
}

// CheckNamespace returns BadRequest (400) if the namespace in the metadata of an object differs from
// that of the path. A cluster-scoped object may have any namespace, which is dropped later.
func CheckNamespace(t *catalogue.Type, namespace string, meta map[string]any) error {
	given, _ := meta["namespace"].(string)
	if t.Namespaced && given != "" && given != namespace {
		return services.BadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// CheckName returns BadRequest (400) if the name in the metadata of an object is not that of the path.
func CheckName(name string, meta map[string]any) error {
	switch given, _ := meta["name"].(string); given {
	case name:
		return nil
	case "":
		return services.BadRequest("the name of the object (%s based on URL) was undeterminable: name must be provided", name)
	default:
		return services.BadRequest("the name of the object (%s) does not match the name on the URL (%s)", given, name)
	}
}

// CheckAbsent returns Conflict (409) if the metadata of an object that does not exist has a UID:
// the object that the client means has been deleted. applied says that it is applied.
func CheckAbsent(t *catalogue.Type, name string, meta map[string]any, applied bool) error {
	uid, _ := meta["uid"].(string)
	if uid == "" {
		return nil
	}
	why := "Precondition failed: UID in precondition: " + uid + ", UID in object meta: "
	if applied {
		why = "uid mismatch: the provided object specified uid " + uid + ", and no existing object was found"
	}
	return services.Conflict(t.Group, t.Resource, name, why)
}
