package typesystem

import (
	"fmt"

	"github.com/portico-platform/portico/services"
)

// CheckIdentity refuses an object that mutating admission has turned into another one:
// another namespace or name is a BadRequest (400); another apiVersion or kind, which no
// path could serve, is an InternalError (500), because the client is not to blame. A
// missing namespace is no other one.
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
			"mutating admission changed it from %q to %q", said(was["namespace"]), said(given))
	}
	if was["name"] != is["name"] {
		return services.BadRequest("the name of the object (%s) does not match the name on the request (%s): mutating admission changed it",
			said(is["name"]), said(was["name"]))
	}
	return nil
}

// said returns a member of an object as a message shows it.
func said(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
