package wire_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire/layout"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

const media = "application/vnd.platform.protobuf"

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func envelope(t testing.TB, kind schema.GroupVersionKind, object string) string {
	t.Helper()
	messages, err := protobuf.NewRegistry(vocabulary.Platform()).Find(kind)
	if err != nil {
		t.Fatal(err)
	}
	message, err := messages.Append(nil, []byte(object))
	if err != nil {
		t.Fatal(err)
	}
	return string(protobuf.AppendEnvelope(nil, kind, message))
}

func TestDecode(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	want := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "a", "generation": int64(7)}, "data": map[string]any{"k": "v"}}
	const text = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":7},"data":{"k":"v"}}`
	for contentType, body := range map[string]string{
		"":                                text,
		"application/json":                text,
		"application/json; charset=utf-8": text,
		"application/yaml":                "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, generation: 7}\ndata:\n  k: v\n",
		media:                             envelope(t, configMapKind, text),
	} {
		b, err := codec.Decode(contentType, []byte(body), configMaps, nil)
		if err != nil || !reflect.DeepEqual(b.Object, want) || len(b.Strict) != 0 {
			t.Errorf("%s: %v, %v", contentType, b, err)
		}
	}
	inside := "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12" + string(rune(len(text))) + text + "\x22\x10application/json"
	if b, err := codec.Decode(media, []byte(inside), configMaps, nil); err != nil || !reflect.DeepEqual(b.Object, want) {
		t.Errorf("JSON in an envelope: %v, %v", b, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	for _, c := range []struct{ contentType, body, reason, message string }{
		{"text/xml", "<a/>", services.ReasonUnsupportedMediaType, "application/json, application/yaml, " + media},
		{"application/vnd.kubernetes.protobuf", "", services.ReasonBadRequest, "6b 38 73 00"},
		{"application/vnd.other.protobuf", "", services.ReasonUnsupportedMediaType, ""},
		{";", "", services.ReasonUnsupportedMediaType, ""},
		{"", "{not json", services.ReasonBadRequest, "must be of type ConfigMap"},
		{"", "", services.ReasonBadRequest, "unexpected end of JSON input"},
		{"", "[]", services.ReasonBadRequest, "must be of type ConfigMap"},
		{"", `{"kind":7,"apiVersion":"v1"}`, services.ReasonBadRequest, "its kind is no string"},
		{"", "[1]", services.ReasonBadRequest, "(5b315d)"},
		{"", `{"kind":"ConfigMap","apiVersion":"v1"`, services.ReasonBadRequest, `({"kind":"ConfigMap","apiVersio ...)`},
		{"", `{"kind":"Deployment","apiVersion":"apps/v1"}`, services.ReasonBadRequest, `Deployment in version "v1" cannot be handled as a ConfigMap`},
		{"", `{"kind":"Secret","apiVersion":"v1"}`, services.ReasonBadRequest, `Secret in version "v1" cannot be handled as a ConfigMap`},
		{"", `{"kind":"ConfigMap","apiVersion":"v2"}`, services.ReasonBadRequest, "the API version in the data (v2) does not match the expected API version (v1)"},
		{"", `{"kind":"ConfigMap","apiVersion":"v1"} trailing`, services.ReasonBadRequest, "must be of type ConfigMap"},
		{"application/yaml", "a: [", services.ReasonBadRequest, "yaml parse error"},
		{media, "no envelope", services.ReasonBadRequest, "6b 38 73 00"},
		{media, envelope(t, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "{}"), services.ReasonBadRequest, "Secret in version"},
		{media, string(protobuf.AppendEnvelope(nil, configMapKind, []byte("\xff"))), services.ReasonBadRequest, "must be of type ConfigMap"},
	} {
		_, err := codec.Decode(c.contentType, []byte(c.body), configMaps, nil)
		if !services.IsReason(err, c.reason) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s %q: %v; want %s %q", c.contentType, c.body, err, c.reason, c.message)
		}
	}
	if _, err := codec.Decode(media, []byte("k8s\x00"), widgets, nil); !services.IsReason(err, services.ReasonUnsupportedMediaType) {
		t.Errorf("Protobuf of a custom type: %v", err)
	}
}

// TestDecodeWithoutKind omits kind and apiVersion, which only custom types require.
func TestDecodeWithoutKind(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	want := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]any{"k": "1"}}
	whole, err := protobuf.OpenEnvelope([]byte(envelope(t, configMapKind, `{"data":{"k":"1"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	nameless := string(protobuf.AppendEnvelope(nil, schema.GroupVersionKind{}, whole.Raw))
	for _, c := range []struct{ contentType, body string }{
		{"", `{"data":{"k":"1"}}`}, {"", `{"kind":"ConfigMap","data":{"k":"1"}}`}, {"", `{"kind":"","apiVersion":null,"data":{"k":"1"}}`},
		{"application/yaml", "data:\n  k: \"1\"\n"}, {media, nameless},
	} {
		b, err := codec.Decode(c.contentType, []byte(c.body), configMaps, nil)
		delete(b.Object, "metadata") // always present in Protobuf
		if err != nil || !reflect.DeepEqual(b.Object, want) {
			t.Errorf("%s %q: %v, %v", c.contentType, c.body, b.Object, err)
		}
	}
	for body, message := range map[string]string{
		`{"apiVersion":"example.com/v1"}`: "Object 'Kind' is missing", `{"kind":"Widget"}`: "Object 'apiVersion' is missing",
	} {
		if _, err := codec.Decode("", []byte(body), widgets, nil); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestDecodeStrict(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	for contentType, body := range map[string]string{
		"application/json": `{"kind":"ConfigMap","apiVersion":"v1","data":{"k":"1","k":"2"}}`,
		"application/yaml": "kind: ConfigMap\napiVersion: v1\ndata:\n  k: \"1\"\n  k: \"2\"\n",
	} {
		b, err := codec.Decode(contentType, []byte(body), configMaps, nil)
		if err != nil || len(b.Strict) != 1 || !strings.Contains(b.Strict[0], `"`) || b.Object["data"].(map[string]any)["k"] != "2" {
			t.Errorf("%s: %v, %v", contentType, b, err)
		}
	}
}

// TestFindingsInOrder: findings come in the order of their fields in the text.
func TestFindingsInOrder(t *testing.T) {
	text := `{"b":1,"spec":{"z":[{"y":1},{"x":1,"n":2,"x":3}],"a":1,"a":2},"a.b":{"c":1}}`
	long := strings.Repeat("l", 1000)
	for given, want := range map[string]string{
		`duplicate field "spec.a"; duplicate field "spec.z[1].x"; unknown field "b"; unknown field "spec.z[0].y"; unknown field "spec.z[1].n"`: `unknown field "b"; unknown field "spec.z[0].y"; unknown field "spec.z[1].n"; duplicate field "spec.z[1].x"; duplicate field "spec.a"`,
		`unknown field "nowhere"; unknown field "spec.a"; unknown field "b"`:                                                                   `unknown field "b"; unknown field "spec.a"; unknown field "nowhere"`,
		`unknown field "a.b.c"; unknown field "b"`:                                                                                             `unknown field "b"; unknown field "a.b.c"`,
		`unknown field "spec.a"; unknown field "` + long + `"; unknown field "b"`:                                                              `unknown field "spec.a"; unknown field "` + long + `"; unknown field "b"`,
		`unknown field "spec.a"; without a path; unknown field "b"`:                                                                            `unknown field "spec.a"; without a path; unknown field "b"`,
	} {
		findings := strings.Split(given, "; ")
		layout.InOrder(findings, []byte(text))
		if got := strings.Join(findings, "; "); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDeleteOptions(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	kind := schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}
	for contentType, body := range map[string]string{
		"":                 `{"gracePeriodSeconds":5}`,
		"application/json": `{"kind":"DeleteOptions","apiVersion":"apps/v1","gracePeriodSeconds":5}`,
		"application/yaml": "gracePeriodSeconds: 5",
		media:              envelope(t, kind, `{"gracePeriodSeconds":5}`),
	} {
		o, err := codec.DeleteOptions(contentType, []byte(body), nil)
		if err != nil || o.GracePeriodSeconds == nil || *o.GracePeriodSeconds != 5 {
			t.Errorf("%s: %v, %v", contentType, o, err)
		}
	}
	if o, err := codec.DeleteOptions("", nil, nil); err != nil || o == nil {
		t.Errorf("no body: %v, %v", o, err)
	}
	for _, body := range []string{"{", `{"kind":"Pod"}`, `{"gracePeriodSeconds":"x"}`} {
		if _, err := codec.DeleteOptions("", []byte(body), nil); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := codec.DeleteOptions("text/plain", []byte("x"), nil); !services.IsReason(err, services.ReasonUnsupportedMediaType) {
		t.Errorf("text: %v", err)
	}
}

// FuzzDecode checks that no body panics, that errors are Statuses, and that accepted
// objects are of the type and can be encoded.
func FuzzDecode(f *testing.F) {
	codec := newCodec(vocabulary.Platform())
	types := []string{"application/json", "application/yaml", media}
	const text = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","generation":7},"data":{"k":"v"}}`
	f.Add(0, []byte(text))
	f.Add(0, []byte(`{"kind":"ConfigMap","kind":"ConfigMap","apiVersion":"v1","x":1e400}`))
	f.Add(1, []byte("kind: ConfigMap\napiVersion: v1\nx: &a [*a, !!binary AA==, 0x1F, 1_000, .inf]\n"))
	f.Add(2, []byte(envelope(f, configMapKind, text)))
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		b, err := codec.Decode(types[uint(which)%3], body, configMaps, nil)
		if err != nil {
			if s := services.AsStatus(err); s.Code != 400 {
				t.Errorf("%d: %v", s.Code, err)
			}
			return
		}
		if b.Object["kind"] != "ConfigMap" || b.Object["apiVersion"] != "v1" {
			t.Errorf("accepted %v", b.Object)
		}
		if _, err := json.Marshal(b.Object); err != nil {
			t.Error(err)
		}
	})
}
