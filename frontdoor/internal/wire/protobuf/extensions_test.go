package protobuf_test

import (
	"encoding/json"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestDefinitions converts a definition to its message and back: schema extensions have the
// published prefix in the message and the vocabulary's in JSON, and a property with such a
// name keeps it.
func TestDefinitions(t *testing.T) {
	for _, v := range []vocabulary.Vocabulary{vocabulary.K8s(), vocabulary.Platform()} {
		m, err := protobuf.NewRegistry(v).Find(schema.GroupVersionKind{Group: v.Group("apiextensions."), Version: "v1", Kind: "CustomResourceDefinition"})
		if err != nil {
			t.Fatal(err)
		}
		list := `"` + v.Extension + `list-type":"set"`
		text := `{"apiVersion":"` + v.Group("apiextensions.") + `/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"group":"b","versions":[{"name":"v1","schema":{"openAPIV3Schema":{` +
			`"type":"object","properties":{"` + v.Extension + `int-or-string":{"type":"boolean","default":true},"l":{"type":"array",` + list + `,"items":{"anyOf":[{"` + v.Extension + `int-or-string":true}]}}}}}}]}}`
		message, err := m.Append(nil, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var typed apiextensionsv1.CustomResourceDefinition
		if err := typed.Unmarshal(message); err != nil {
			t.Fatal(err)
		}
		root := typed.Spec.Versions[0].Schema.OpenAPIV3Schema
		l := root.Properties["l"]
		if l.XListType == nil || *l.XListType != "set" || !l.Items.Schema.AnyOf[0].XIntOrString || string(root.Properties[v.Extension+"int-or-string"].Default.Raw) != "true" {
			t.Errorf("%s: the message says %+v", v.Name, root)
		}
		object, err := m.Decode(message, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		got, _ := json.Marshal(schemaOf(object))
		if expected, _ := json.Marshal(schemaOf(want)); string(got) != string(expected) {
			t.Errorf("%s: got %s\nwant %s", v.Name, got, expected)
		}
	}
}

func schemaOf(definition map[string]any) any {
	versions := definition["spec"].(map[string]any)["versions"].([]any)
	return versions[0].(map[string]any)["schema"]
}
