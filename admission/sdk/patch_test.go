package sdk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
)

// step is a Set, or a Remove if remove is set.
type step struct {
	value  any
	path   []any
	remove bool
}

func at(path ...any) []any { return path }

func (s step) do(r *Review) error {
	if s.remove {
		return r.Remove(s.path...)
	}
	return r.Set(s.value, s.path...)
}

func changing(object string) *Review {
	return &Review{AdmissionRequest: services.AdmissionRequest{Object: []byte(object)}}
}

// TestChanges checks the changed object, and that the JSON patch results in the same.
func TestChanges(t *testing.T) {
	const object = `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":"x","~/":{"k":1}}`
	for name, x := range map[string]struct {
		steps []step
		want  string // empty: unchanged
	}{
		"a member":               {[]step{{"y", at("s"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":"y","~/":{"k":1}}`},
		"the same value":         {[]step{{"x", at("s"), false}}, ""},
		"the same number":        {[]step{{1, at("a", "b", 0, "c"), false}}, ""},
		"an item":                {[]step{{3, at("a", "b", 1, "c"), false}}, `{"a":{"b":[{"c":1},{"c":3}]},"n":null,"s":"x","~/":{"k":1}}`},
		"a new item":             {[]step{{3, at("a", "b", 2, "c"), false}}, `{"a":{"b":[{"c":1},{"c":2},{"c":3}]},"n":null,"s":"x","~/":{"k":1}}`},
		"new objects":            {[]step{{true, at("x", "y", 0, "z"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":"x","x":{"y":[{"z":true}]},"~/":{"k":1}}`},
		"through a null":         {[]step{{true, at("n", "y"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":{"y":true},"s":"x","~/":{"k":1}}`},
		"a null to a value":      {[]step{{1.5, at("n"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":1.5,"s":"x","~/":{"k":1}}`},
		"a name to escape":       {[]step{{2, at("~/", "k"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":"x","~/":{"k":2}}`},
		"below a value just set": {[]step{{map[string]any{"l": []string{"p"}}, at("m"), false}, {"q", at("m", "l", 1), false}, {"r", at("m", "l", 0), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"m":{"l":["r","q"]},"n":null,"s":"x","~/":{"k":1}}`},
		"below a replaced value": {[]step{{[]string{}, at("s"), false}, {"q", at("s", 0), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":["q"],"~/":{"k":1}}`},
		"removing a member":      {[]step{{nil, at("s"), true}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"~/":{"k":1}}`},
		"removing an item":       {[]step{{nil, at("a", "b", 0), true}}, `{"a":{"b":[{"c":2}]},"n":null,"s":"x","~/":{"k":1}}`},
		"removing what is not":   {[]step{{nil, at("a", "b", 2), true}, {nil, at("s", "t"), true}, {nil, at("q", "r"), true}}, ""},
		"a struct":               {[]step{{struct{ K int }{7}, at("s"), false}}, `{"a":{"b":[{"c":1},{"c":2}]},"n":null,"s":{"K":7},"~/":{"k":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := changing(object)
			for _, s := range x.steps {
				if err := s.do(r); err != nil {
					t.Fatal(err)
				}
			}
			response, err := r.response()
			if err != nil || string(response.Object) != x.want {
				t.Fatalf("got %s, %v\nwant %s", response.Object, err, x.want)
			}
			if x.want == "" {
				return
			}
			patch, err := json.Marshal(r.patch())
			if err != nil {
				t.Fatal(err)
			}
			patched, err := jsonpatch.Apply(t.Context(), []byte(object), patch)
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if json.Unmarshal(patched, &a) != nil || json.Unmarshal(response.Object, &b) != nil || !reflect.DeepEqual(a, b) {
				t.Errorf("the patch %s results in %s", patch, patched)
			}
			if string(r.Object) != object {
				t.Errorf("the object of the request became %s", r.Object)
			}
		})
	}
}

func TestImpossibleChanges(t *testing.T) {
	for want, s := range map[string]step{
		"setting : the path is empty":                                        {1, nil, false},
		"setting /l/7: /l is a list of 1 items and has no item 7":            {1, at("l", 7), false},
		"setting /l/-1: /l is a list of 1 items and has no item -1":          {1, at("l", -1), false},
		"setting /l/x: /l is a list of 1 items and has no item x":            {1, at("l", "x"), false},
		"setting /s/x: /s is a value and has no member x":                    {1, at("s", "x"), false},
		"setting /0:  is an object and has no item 0":                        {1, at(0), false},
		"setting /new/3: a new list has no item 3":                           {1, at("new", 3), false},
		"setting /new/1.5: a path consists of strings and ints, not float64": {1, at("new", 1.5), false},
		"setting /s: json: unsupported type: chan int":                       {make(chan int), at("s"), false},
	} {
		r := changing(`{"l":[1],"s":"x"}`)
		if err := s.do(r); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		if response, err := r.response(); response.Object != nil || err != nil {
			t.Errorf("%s: changed to %s, %v", want, response.Object, err)
		}
	}
	validating := changing(`{}`)
	validating.readOnly = true
	for _, r := range []*Review{validating, {}, changing(`[]`)} {
		if err := r.Set(1, "a"); err == nil {
			t.Errorf("%s: no error", r.Object)
		}
	}
}

// FuzzSet sets a value at paths of all kinds in objects of all kinds: the changed object and
// the patched one are the same.
func FuzzSet(f *testing.F) {
	f.Add(`{"a":{"b":[1]}}`, "a/b/#0", "v")
	f.Add(`{"a":null}`, "a/#0/x", "v")
	f.Fuzz(func(t *testing.T, object, path, value string) {
		r := changing(object)
		var steps []any
		for _, step := range strings.Split(path, "/") {
			if index, ok := strings.CutPrefix(step, "#"); ok && len(index) == 1 && index[0] >= '0' && index[0] <= '9' {
				steps = append(steps, int(index[0]-'0'))
				continue
			}
			steps = append(steps, step)
		}
		if r.Set(value, steps...) != nil || len(r.operations) == 0 {
			return
		}
		response, err := r.response()
		if err != nil {
			return // nested too deeply
		}
		patch, err := json.Marshal(r.patch())
		if err != nil {
			t.Fatal(err)
		}
		patched, err := jsonpatch.Apply(t.Context(), []byte(object), patch)
		if err != nil {
			t.Fatalf("%s cannot be applied to %s: %v", patch, object, err)
		}
		var a, b any
		if json.Unmarshal(patched, &a) != nil || json.Unmarshal(response.Object, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%s becomes %s, patched with %s it is %s", object, response.Object, patch, patched)
		}
	})
}
