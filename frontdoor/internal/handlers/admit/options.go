package admit

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
)

// options returns the JSON of the options of an operation, as version v1 of a group has
// them; nil for none.
type options func(operation services.Operation, group string) []byte

// writeOptions are those of a create, update or patch. Admission sees CreateOptions when
// the request creates the object, else UpdateOptions, whatever the verb is. The field
// manager is the one that the client names.
func writeOptions(given request.WriteOptions) options {
	return func(operation services.Operation, group string) []byte {
		kind := "UpdateOptions"
		if operation == services.OperationCreate {
			kind = "CreateOptions"
		}
		// UpdateOptions have the same members.
		typed := metav1.CreateOptions{TypeMeta: optionsType(kind, group), FieldManager: given.Manager}
		if given.DryRun {
			typed.DryRun = []string{metav1.DryRunAll}
		}
		raw, _ := json.Marshal(typed) // plain values always encode
		return raw
	}
}

// deleteOptions are those of a deletion, as the client gives them.
func deleteOptions(given *metav1.DeleteOptions) options {
	return func(_ services.Operation, group string) []byte {
		typed := *given
		typed.TypeMeta = optionsType("DeleteOptions", group)
		raw, _ := json.Marshal(typed) // plain values always encode
		return raw
	}
}

// noOptions are those of a connect.
func noOptions(services.Operation, string) []byte { return nil }

func optionsType(kind, group string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: group + "/v1"}
}
