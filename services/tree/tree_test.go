package tree

import (
	"reflect"
	"testing"

	kjson "sigs.k8s.io/json"
)

var samples = []string{
	`{}`, ` { "a" : [ 1 , 2.5 , -3 , 1e300 , 0.000001 , true , false , null , "x" ] , "c":{"d":{},"e":[]}} `,
	`{"a":9223372036854775807,"b":9223372036854775808,"c":-0,"d":1E2,"e":-0.0}`, `{"text":"a\"b\\c\n\t\u0000<&>é\u2028\ud83d\ude00\ud800"}`,
	`{"":"","é":1}`, `{"a":1,"a":2}`, `{"a":01}`, `{"a":1.}`, `{"a":tru}`, `{"a":1}x`, `{"a":1,}`, `{"a":[1,]}`, `{"a"`, `null`, `[]`, `{"a":"` + "\xff" + `"}`, `{"a":1e999}`,
}

// agree compares DecodePlain with the library, where ok is true.
func agree(t *testing.T, raw []byte) {
	t.Helper()
	got, ok := DecodePlain(raw)
	var want map[string]any
	strict, err := kjson.UnmarshalStrict(raw, &want, kjson.DisallowDuplicateFields)
	if ok && (err != nil || len(strict) > 0 || !reflect.DeepEqual(got, want)) {
		t.Errorf("%q: got %#v; want %#v, %v, %v", raw, got, want, strict, err)
	}
	if ok && (!Equal(got, want) || !Equal(Copy(got), want)) {
		t.Errorf("%q: a copy differs", raw)
	}
	for range 2 { // now parts of it may be shared
		if again, repeated := DecodePlain(raw); repeated != ok || ok && !reflect.DeepEqual(again, want) {
			t.Errorf("%q: later got %#v, %v; want %#v", raw, again, repeated, want)
		}
	}
}

func TestDecodesLikeTheLibrary(t *testing.T) {
	for i, sample := range samples {
		agree(t, []byte(sample))
		if _, ok := DecodePlain([]byte(sample)); ok != (i < 5) {
			t.Errorf("%q: ok is %v", sample, ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, sample := range samples {
		f.Add([]byte(sample))
	}
	for _, set := range []string{`{"f:a":{".":{},"k:{\"x\":1}":{}}}`, `{"f:a":{ }}`, `{"f:a":{}`, `{"a":1,"a":2}`, `[]`, `{"f:a":"\`} {
		f.Add([]byte(owned(set)))
	}
	f.Fuzz(agree)
}

func TestEqual(t *testing.T) {
	object, _ := DecodePlain([]byte(samples[1]))
	other := Copy(object).(map[string]any)
	if !Equal(object, other) {
		t.Error("a copy is not equal")
	}
	other["a"].([]any)[1] = 2.25
	if Equal(object, other) || object["a"].([]any)[1] != 2.5 {
		t.Error("a copy shares a list")
	}
	for _, pair := range [][2]any{{nil, ""}, {int64(1), 1.0}, {"a", "b"}, {true, false}, {[]any{}, nil}, {map[string]any{"a": nil}, map[string]any{"b": nil}}} {
		if Equal(pair[0], pair[1]) {
			t.Errorf("%#v is %#v", pair[0], pair[1])
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"app":"x","tier":"y"}},"spec":{"containers":[{"name":"main","image":"registry.example.com/web:1.2.3",
		"env":[{"name":"A","value":"a-value-of-a-usual-length"},{"name":"B","value":"a-value-of-a-usual-length"},{"name":"C","value":"a-value-of-a-usual-length"}],
		"ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]}}`)
	for name, decode := range map[string]func() error{
		"ours":    func() error { _, _ = DecodePlain(raw); return nil },
		"library": func() error { var m map[string]any; return kjson.UnmarshalCaseSensitivePreserveInts(raw, &m) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestObject(t *testing.T) {
	parent := map[string]any{"there": map[string]any{"a": "b"}, "none": nil, "other": "text"}
	for name, want := range map[string]int{"there": 1, "none": 0, "other": 0, "missing": 0} {
		if got := Object(parent, name); len(got) != want || !reflect.DeepEqual(parent[name], got) {
			t.Errorf("%s: got %v, and %v stands there", name, got, parent[name])
		}
	}
}
