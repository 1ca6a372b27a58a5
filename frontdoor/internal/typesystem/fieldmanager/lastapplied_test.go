package fieldmanager

import (
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestLargeLastApplied: the annotation of client-side apply goes when it would make the object invalid.
func TestLargeLastApplied(t *testing.T) {
	e := New(Options{Vocabulary: vocabulary.K8s()})
	for size, want := range map[int]bool{200 << 10: true, 256 << 10: false} {
		config := map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("x", size)}}
		object := map[string]any{"metadata": map[string]any{"annotations": map[string]any{e.lastAppliedName(): "{}", "other": "kept"}}}
		e.syncLastApplied(PatchRequest{Manager: kubectl}, object, config)
		if text := tree.Text(annotationsOf(object), e.lastAppliedName()); strings.Contains(text, "ConfigMap") != want || (text == "") == want {
			t.Errorf("%d bytes: an annotation of %d bytes", size, len(text))
		}
		if annotationsOf(object)["other"] != "kept" {
			t.Errorf("%d bytes: %v", size, annotationsOf(object)["other"])
		}
	}
}
