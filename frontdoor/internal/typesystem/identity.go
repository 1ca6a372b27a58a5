package typesystem

import (
	"fmt"

	"github.com/portico-platform/portico/services"
)

// CheckIdentity returns an error if mutating admission has changed the identity of an
// object: BadRequest (400) for another namespace or name, InternalError (500) for another
// apiVersion or kind, because no path could serve it and the client is not at fault. An
// absent namespace is accepted.
func CheckIdentity(before, after map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if before[field] != after[field] {
			return fmt.Errorf("mutating admission changed the %s of the object from %v to %v", field, before[field], after[field])
		}
	}
	was, _ := before["metadata"].(map[string]any)
	is, ok := after["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("mutating admission removed the metadata of the object")
	}
	if given := is["namespace"]; given != nil && given != "" && given != was["namespace"] {
		return services.BadRequest("the namespace of the provided object does not match the namespace sent on the request: "+
			"mutating admission changed it from %q to %q", text(was["namespace"]), text(given))
	}
	if was["name"] != is["name"] {
		return services.BadRequest("the name of the object (%s) does not match the name on the request (%s): mutating admission changed it",
			text(is["name"]), text(was["name"]))
	}
	return nil
}

// text formats a value for a message; nil is "".
func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
