package ledger

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func decode(text []byte) (value any, ok bool) {
	return value, json.Unmarshal(text, &value) == nil
}

// count returns the number of values, without the keys of objects.
func count(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			n += count(each)
		}
	case []any:
		for _, each := range v {
			n += count(each)
		}
	}
	return n + 1
}

// heaviest are texts that take most memory for a value when they are decoded without a type.
func heaviest(values int) map[string][]byte {
	list := func(item string, each int) []byte {
		return []byte("[" + strings.Repeat(item+",", values/each) + item + "]")
	}
	return map[string][]byte{
		"empty objects": list("{}", 2), "objects of one member": list(`{"a":1}`, 2), "lists of one": list("[1]", 2),
		"numbers": list("1", 1), "strings": list(`"a"`, 1), "objects in objects": list(`{"a":{"a":{}}}`, 4),
	}
}

// TestWeights measures what decoding takes: never more than what is charged.
func TestWeights(t *testing.T) {
	for what, text := range heaviest(100_000) {
		charged, err := Body.Check(text)
		if err != nil {
			t.Fatal(err)
		}
		if took := retained(func() any { v, _ := decode(text); return v }); took > charged {
			t.Errorf("%s: %d bytes are charged for %d, and %d are taken", what, charged, len(text), took)
		}
	}
	text := strings.Repeat("a,", Selector.Values-1) + "a"
	if took := retained(func() any { s, _ := ParseLabels(text); return s }); took > SelectorWeight(text) {
		t.Errorf("a selector takes %d bytes, %d are charged", took, SelectorWeight(text))
	}
}

// retained returns how many bytes of the heap the result of make takes.
func retained(make func() any) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	v := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}
