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
	if found := v.Get("a", "b"); v.Offset(found) != 13 {
		t.Errorf("%s is at %d", []byte(found), v.Offset(found))
	}
	var last Value
	for item := range v.Get("a", "b").Items() {
		last = item
	}
	if got := last.Get("c").String(); got != `x"}y` {
		t.Errorf("got %q", got)
	}
}

// TestIndex finds the members of two levels in one scan.
func TestIndex(t *testing.T) {
	v := Value(`{"a":{"x":1, "y":[{}]},"b":{"x":2},"c":null,"d":"s"}`)
	below := map[string]*Index{"a": {}, "c": {}}
	index := v.Index(nil, func(key Value) *Index { return below[key.String()] })
	for _, c := range []struct{ got, want Value }{
		{index.Get("a"), v.Get("a")},
		{index.Get("b", "x"), v.Get("b", "x")},
		{index.Get("c"), v.Get("c")},
		{index.Get("d"), v.Get("d")},
		{index.Get("e"), nil},
		{below["a"].Get("x"), v.Get("a", "x")},
		{below["a"].Get("y"), v.Get("a", "y")},
		{below["c"].Get("x"), nil},
	} {
		if string(c.got) != string(c.want) || v.Offset(c.got) != v.Offset(c.want) {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
}

// FuzzValue checks that no input panics or hangs, and that valid objects have the members
// that encoding/json finds.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":{"b":[1,"\\",{}]}}`, `{"a`, `[[`, `{"a":"\`, `"`, `{"a" "b"}`, `[,]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := Value(b)
		n := v.Len()
		_, _ = v.Text(), v.Get("a", "b").Int()
		index := v.Index(nil, noIndex)
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
