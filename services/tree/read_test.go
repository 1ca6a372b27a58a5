package tree

import (
	"reflect"
	"testing"
)

// TestReaders: absent values and values of other types return zero values.
func TestReaders(t *testing.T) {
	object, err := Decode([]byte(`{"a":{"b":{"text":"x","n":3,"list":["p",1,"q",{"c":"d"}]}},"null":null}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][2]any{
		"text":              {Text(object, "a", "b", "text"), "x"},
		"text of a number":  {Text(object, "a", "b", "n"), ""},
		"text below a text": {Text(object, "a", "b", "text", "x"), ""},
		"text below null":   {Text(object, "null", "x"), ""},
		"text of nothing":   {Text(nil, "x"), ""},
		"number":            {Number(object, "a", "b", "n"), int64(3)},
		"number of a text":  {Number(object, "a", "b", "text"), int64(0)},
		"texts":             {Texts(object, "a", "b", "list"), []string{"p", "q"}},
		"objects":           {Objects(object, "a", "b", "list"), []map[string]any{{"c": "d"}}},
		"length of a list":  {len(List(object, "a", "b", "list")), 4},
		"list of an object": {List(object, "a"), []any(nil)},
		"child":             {Child(object, "a", "x"), map[string]any(nil)},
		"value":             {Value(object, "null"), nil},
		"list of texts":     {ListOf([]string{"a"}), []any{"a"}},
	} {
		if !reflect.DeepEqual(got[0], got[1]) {
			t.Errorf("%s: %#v, want %#v", name, got[0], got[1])
		}
	}
	if Object(object, "made")["x"] = true; !reflect.DeepEqual(Child(object, "made"), map[string]any{"x": true}) {
		t.Errorf("%v", object)
	}
}

// TestReadersAllocateNothing: readers are called several times per write.
func TestReadersAllocateNothing(t *testing.T) {
	object := map[string]any{"metadata": map[string]any{"name": "a", "list": []any{"x"}}}
	if n := testing.AllocsPerRun(100, func() {
		if Text(object, "metadata", "name") != "a" || len(List(object, "metadata", "list")) != 1 {
			t.Error("not read")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSplices: fields are inserted as the first ones of the metadata.
func TestSplices(t *testing.T) {
	const object = `{"a":{"metadata":{"x":1}},"metadata":{"name":"a"}}`
	if got, want := string(WithResourceVersion([]byte(object), 7)), `{"a":{"metadata":{"x":1}},"metadata":{"resourceVersion":"7","name":"a"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for other, want := range map[string]bool{
		`{"a":{"metadata":{"x":1}},"metadata":{"resourceVersion":"7","name":"a"}}`: true, `{"a":{"metadata":{"x":1}},"metadata":{"resourceVersion":"8","name":"a"}}`: false,
		`{"a":{"metadata":{"x":2}},"metadata":{"resourceVersion":"7","name":"a"}}`: false, `{"a":{"metadata":{"x":1}},"metadata":{"resourceVersion":"7","name":"b"}}`: false, object: false, "": false,
	} {
		if got := IsVersion([]byte(other), []byte(object), 7); got != want {
			t.Errorf("%s: got %v", other, got)
		}
	}
	got, err := WithManagedFields([]byte(object), []any{map[string]any{"manager": "m"}})
	if want := `{"a":{"metadata":{"x":1}},"metadata":{"managedFields":[{"manager":"m"}],"name":"a"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	if got, err := WithManagedFields([]byte(object), nil); err != nil || string(got) != object {
		t.Errorf("%s, %v", got, err)
	}
	for _, broken := range []string{``, `{}`, `{"metadata":{}}`, `{"metadata":1}`} {
		if got := WithResourceVersion([]byte(broken), 7); string(got) != broken || !IsVersion([]byte(broken), []byte(broken), 7) {
			t.Errorf("%s became %s", broken, got)
		}
		if _, err := WithManagedFields([]byte(broken), []any{}); err == nil {
			t.Errorf("%s has no metadata", broken)
		}
	}
}
