package crd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestCompiledDefinitionsAreSmall: a compiled definition holds the text of its schemas and little else, until they are
// needed.
func TestCompiledDefinitionsAreSmall(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	var fields []string
	for i := range 60 {
		fields = append(fields, fmt.Sprintf(`field%d: {type: string, description: "%s"}`, i, strings.Repeat("text ", 20)))
	}
	text, err := tree.Encode(w.widgets(t, `{type: object, properties: {spec: {type: object, properties: {`+strings.Join(fields, ", ")+`}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const definitions = 200
	var kept []crd.Definition
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	before := heap()
	for range definitions {
		object, err := tree.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		d, err := crd.Compile(object, crd.Setting{Types: w.types, Vocabulary: w.vocabulary})
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, d)
	}
	if each, most := (heap()-before)/definitions, int64(len(text)*3/2+4096); each > most {
		t.Errorf("a definition of %d bytes takes %d bytes, want at most %d", len(text), each, most)
	}
	runtime.KeepAlive(kept)
}
