package core

import (
	"reflect"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// TestSecretsOfAccount: references to Secrets keep only the name.
func TestSecretsOfAccount(t *testing.T) {
	obj := map[string]any{"secrets": []any{map[string]any{"name": "a", "namespace": "b", "kind": "Secret"}, map[string]any{"uid": "c"}}}
	nameSecrets(kinds.Write{}, obj, nil)
	if want := []any{map[string]any{"name": "a"}, map[string]any{}}; !reflect.DeepEqual(obj["secrets"], want) {
		t.Errorf("%v, want %v", obj["secrets"], want)
	}
}
