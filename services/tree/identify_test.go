package tree_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

func TestIdentify(t *testing.T) {
	got, err := tree.Identify([]byte(` {"kind":"A","apiVersion":"g/v1","spec":{"kind":"B","metadata":{"name":"no"}},"metadata":{"labels":{"name":"no"},"name":"a\u0041\n","namespace":"ns","x":[1,-0.5e+3,true,null]}} `))
	if want := (tree.Identity{APIVersion: "g/v1", Kind: "A", Name: "aA\n", Namespace: "ns", Metadata: 90}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for text, want := range map[string]int{`{"metadata":{}}`: 0, `{"metadata": { } }`: 0, `{"kind":"A"}`: 0, `{"metadata":{},"metadata":{"name":"a"}}`: 0, `{"metadata": {"name":"a"},"metadata":{"name":"b"}}`: 14} {
		if got, err := tree.Identify([]byte(text)); err != nil || got.Metadata != want {
			t.Errorf("%s: metadata at %d (%v), want %d", text, got.Metadata, err, want)
		}
	}
	for _, text := range []string{"", "garbage", "[]", `"a"`, `{"a":1}x`, `{"a":1`, `{"a":tru}`, `{"a":01}`, `{"a":1.}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", `{"a":"\u12g4"}`, `{a:1}`, `{"a"}`, `{"a":1,}`, `{"a":[1,]}`, `{"a":-}`, "{}\x00", `{"a":` + "\x00}"} {
		if _, err := tree.Identify([]byte(text)); err == nil {
			t.Errorf("%q is taken for an object", text)
		}
	}
}

// FuzzIdentify: an object is accepted exactly if encoding/json accepts it.
func FuzzIdentify(f *testing.F) {
	for _, text := range []string{`{"metadata":{"name":"a"}}`, `{"a":[{},[],"\u00e9",1e5,-0,false]}`, `{"a":"` + "\xff" + `"}`, `{"a":0.0}`, `{"a":1E-2,"b":{"c":null}}`, `{"a":2.}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, err := tree.Identify(raw)
		if whole := json.Valid(raw) && strings.HasPrefix(strings.TrimLeft(string(raw), " \t\r\n"), "{"); whole != (err == nil) {
			t.Errorf("%q: %v", raw, err)
		}
	})
}

func BenchmarkIdentify(b *testing.B) {
	for name, data := range map[string]string{
		"text":   `"` + strings.Repeat("some text ", 200) + `"`,
		"values": `[` + strings.Repeat(`{"name":"a","value":1,"on":true,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},`, 24) + `null]`,
	} {
		raw := []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"ns"},"data":{"a":` + data + `}}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if _, err := tree.Identify(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
