package tree

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// owned returns an object with a fieldsV1.
func owned(set string) string {
	return `{"metadata":{"managedFields":[{"fieldsType":"FieldsV1","fieldsV1":` + set + `,"manager":"m"}],"name":"a"}}`
}

// setOf decodes an object and returns its fieldsV1.
func setOf(t *testing.T, raw string) map[string]any {
	t.Helper()
	object, err := Decode([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return Child(Objects(object, "metadata", "managedFields")[0], "fieldsV1")
}

func same(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// TestSharesFieldSets decodes texts three times: the third gets what the second has added.
func TestSharesFieldSets(t *testing.T) {
	const set = `{"f:spec":{".":{},"f:ports":{"k:{\"port\":80}":{}}}}`
	for _, c := range []struct {
		raw   string
		share bool
	}{
		{owned(set), true},
		{strings.Replace(owned(set), `"a"`, `"b"`, 1), true},
		{owned(`{ "f:x":{}}`), false}, // not as it is encoded
		{owned(`{"f:y":{},"f:x":{}}`), false},
		{owned(`{"f:x":{"f:` + strings.Repeat("y", maxShared) + `":{}}}`), false},
	} {
		first := setOf(t, c.raw)
		second, third := setOf(t, c.raw), setOf(t, c.raw)
		fourth := setOf(t, c.raw)
		if same(third, fourth) != c.share || !Equal(first, second) || !Equal(second, third) || !Equal(third, fourth) {
			t.Errorf("%.100s: shared is %v: %v", c.raw, !c.share, third)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(c.raw), &want); err != nil {
			t.Fatal(err)
		}
		object, _ := Decode([]byte(c.raw))
		got, err := Encode(object)
		if expected, _ := json.Marshal(want); err != nil || string(got) != string(expected) {
			t.Errorf("encoded as %.200s, %v; want %.200s", got, err, expected)
		}
	}
	for _, path := range []string{`{"spec":{"managedFields":[{"fieldsV1":%s}]}}`, `{"metadata":{"x":[{"fieldsV1":%s}]}}`, `{"metadata":{"managedFields":[{"x":%s}]}}`} {
		var sets []map[string]any
		for range 3 {
			object, err := Decode(fmt.Appendf(nil, path, set))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range object {
				for _, list := range part.(map[string]any) {
					for _, one := range list.([]any)[0].(map[string]any) {
						sets = append(sets, one.(map[string]any))
					}
				}
			}
		}
		if same(sets[0], sets[2]) || same(sets[1], sets[2]) {
			t.Errorf("%s is shared", path)
		}
	}
}

// TestSharedIsBounded adds many sets at a time, of which the one in use stays.
func TestSharedIsBounded(t *testing.T) {
	used := owned(`{"f:used":{}}`)
	setOf(t, used)
	setOf(t, used)
	kept := setOf(t, used)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 60 {
				set := fmt.Sprintf(`{"f:%d-%d":{"f:%s":{}}}`, g, i, strings.Repeat("x", maxShared/2))
				for range 3 {
					if _, err := Decode([]byte(owned(set))); err != nil {
						t.Error(err)
					}
				}
				if got := setOf(t, used); !same(got, kept) {
					t.Error("a set in use was dropped")
				}
			}
		})
	}
	all.Wait()
	for _, g := range []generation{shared.young, shared.old} {
		size := 0
		for text := range g.byText {
			size += len(text)
		}
		if size > maxAllShared || len(g.byText) > len(g.byObject) {
			t.Errorf("%d texts of %d bytes, %d objects", len(g.byText), size, len(g.byObject))
		}
	}
}
