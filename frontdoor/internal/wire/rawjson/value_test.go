package rawjson

import (
	"encoding/json"
	"testing"
)

func TestGet(t *testing.T) {
	v := Value(`{ "a" : {"b":[1,2,{"c":"x\"}y"}],"d":null,"é\n":true}, "e":-7 ,"f":"", "g\\":{}}`)
	for _, c := range []struct {
		got, want any
	}{
		{v.Get("a", "b").Len(), 3},
		{v.Get("a").Len(), 3},
		{v.Get("a", "d").Exists(), false},
		{v.Get("a", "é\n").True(), true},
		{v.Get("e").Int(), int64(-7)},
		{v.Get("e").Text(), "-7"},
		{v.Get("f").Exists(), true},
		{v.Get("f").String(), ""},
		{v.Get("g\\").Text(), "{}"},
		{v.Get("a", "b", "c").Exists(), false},
		{v.Get("missing", "more").Text(), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %v, want %v", c.got, c.want)
		}
	}
	var last Value
	for item := range v.Get("a", "b").Items() {
		last = item
	}
	if got := last.Get("c").String(); got != `x"}y` {
		t.Errorf("got %q", got)
	}
}

// FuzzValue checks that no input panics or hangs, and that valid objects have
// the members that the standard library finds.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":{"b":[1,"\\",{}]}}`, `{"a`, `[[`, `{"a":"\`, `"`, `{"a" "b"}`, `[,]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := Value(b)
		n := v.Len()
		_, _ = v.Text(), v.Get("a", "b").Int()
		index := v.Index()
		for name := range v.Members() {
			if got, want := index.Get(name), v.Get(name); string(got) != string(want) {
				t.Errorf("%s: %s is %s in the index, else %s", b, name, got, want)
			}
		}
		var list []json.RawMessage
		if json.Unmarshal(b, &list) == nil && len(b) > 0 && b[0] == '[' && n != len(list) {
			t.Errorf("%s: %d items, want %d", b, n, len(list))
		}
	})
}
