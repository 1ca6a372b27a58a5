package tree

import (
	"encoding/json"
	"testing"
)

var encodings = []string{
	`{}`, `{"b":1,"a":[1,2.5,-3,1e300,0.000001,true,null,"x"],"c":{"d":{},"e":[]}}`,
	`{"text":"a\"b\\c\n\t\u0000<&>é\u2028\ud83d\ude00"}`, `{"":"","é":1}`,
}

// TestEncodesLikeTheLibrary compares every byte with what encoding/json writes.
func TestEncodesLikeTheLibrary(t *testing.T) {
	for _, sample := range encodings {
		object, err := Decode([]byte(sample))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Encode(object)
		want, _ := json.Marshal(object)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v; want %s", sample, got, err, want)
		}
	}
	if _, err := Encode(map[string]any{"a": func() {}}); err == nil {
		t.Error("a function was encoded")
	}
}

func FuzzEncode(f *testing.F) {
	for _, sample := range encodings {
		f.Add([]byte(sample))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, err := Decode(raw)
		if err != nil || object == nil {
			return
		}
		got, err := Encode(object)
		want, wantErr := json.Marshal(object)
		if (err != nil) != (wantErr != nil) || err == nil && string(got) != string(want) {
			t.Errorf("%s: got %s, %v; want %s, %v", raw, got, err, want, wantErr)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	object := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "b", "labels": map[string]any{"app": "x", "tier": "y"}}}
	var env []any
	for range 24 {
		env = append(env, map[string]any{"name": "SETTING", "value": "a-value-of-a-usual-length"})
	}
	object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "main", "env": env}}}
	for name, encode := range map[string]func(map[string]any) ([]byte, error){
		"ours": Encode, "library": func(m map[string]any) ([]byte, error) { return json.Marshal(m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := encode(object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
