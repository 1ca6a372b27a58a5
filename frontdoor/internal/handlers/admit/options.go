package admit

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// options returns the JSON of the options of an operation, in version v1 of a group; nil
// if there are none.
type options func(operation services.Operation, group string) []byte

// writeOptions returns the options of a create, update or patch. Admission receives
// CreateOptions if the request creates the object, whatever its verb, and otherwise
// UpdateOptions. The field manager is empty unless the client specifies it.
func writeOptions(given request.WriteOptions) options {
	return func(operation services.Operation, group string) []byte {
		kind := "UpdateOptions"
		if operation == services.OperationCreate {
			kind = "CreateOptions"
		}
		// UpdateOptions have the same fields.
		typed := metav1.CreateOptions{TypeMeta: optionsType(kind, group), FieldManager: given.Manager}
		if given.DryRun {
			typed.DryRun = []string{metav1.DryRunAll}
		}
		raw, _ := json.Marshal(typed) // plain values always encode
		return raw
	}
}

// deleteOptions returns the options of a deletion as the client specified them.
func deleteOptions(given *metav1.DeleteOptions) options {
	return func(_ services.Operation, group string) []byte {
		typed := *given
		typed.TypeMeta = optionsType("DeleteOptions", group)
		raw, _ := json.Marshal(typed) // plain values always encode
		return raw
	}
}

// noOptions returns the options of a connect, which has none.
func noOptions(services.Operation, string) []byte { return nil }

func optionsType(kind, group string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: group + "/v1"}
}
