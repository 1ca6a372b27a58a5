package wire_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestText: bodies of every media type are JSON, lists and patches too.
func TestText(t *testing.T) {
	v := vocabulary.K8s()
	list := corev1.ConfigMapList{Items: []corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": "v"}}}}
	message, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	enveloped := protobuf.AppendEnvelope(nil, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}, message)
	codec := wire.New(wire.Config{Vocabulary: v})
	for _, c := range []struct{ media, body, want string }{
		{"", `{"a":1}`, `{"a":1}`},
		{"application/json-patch+json", `[]`, `[]`},
		{"application/apply-patch+yaml", "a: [1]\n", `{"a":[1]}`},
		{v.Protobuf, string(enveloped), `{"apiVersion":"v1","items":[{"data":{"k":"v"},"metadata":{"name":"a"}}],"kind":"ConfigMapList","metadata":{}}`},
	} {
		text, err := codec.Text(c.media, []byte(c.body))
		if err != nil || string(text) != c.want {
			t.Errorf("%s: got %s, want %s (%v)", c.media, text, c.want, err)
		}
	}
	for _, c := range []struct{ media, body string }{{v.Protobuf, "no envelope"}, {"application/yaml", "a: ["}, {";", "{}"}} {
		if text, err := codec.Text(c.media, []byte(c.body)); err == nil {
			t.Errorf("%s: %q was read as %s", c.media, c.body, text)
		}
	}
}
