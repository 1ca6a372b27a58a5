package structural

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
)

// elsewhere are parts of errors that Check returns and the structural validation of
// Kubernetes does not, because other validation of definitions finds them there.
var elsewhere = []string{"nullable cannot be true", "list-type", "list-map-keys", "top-level metadata", "entries must all be"}

// TestGeneratedSchemas compares the errors of randomly generated schemas with those of
// apiextensions-apiserver 0.21.14, which 0.37.2 shares.
func TestGeneratedSchemas(t *testing.T) {
	file, err := os.Open("testdata/generated.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	count := 0
	for ; lines.Scan(); count++ {
		var c struct {
			Schema map[string]any `json:"schema"`
			Causes []string       `json:"causes"`
		}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		found := Schemas{Extension: "x-kubernetes-"}
		found.Check(c.Schema, (*field.Path)(nil).Field("s"))
		var got []string
		for _, cause := range found.Causes() {
			got = append(got, cause.Field+": "+cause.Message)
		}
		for _, text := range got {
			known := func(words string) bool { return strings.Contains(text, words) }
			if !slices.Contains(c.Causes, text) && !slices.ContainsFunc(elsewhere, known) {
				t.Errorf("%s\nfound, and should not be: %s", lines.Bytes(), text)
			}
		}
		for _, text := range c.Causes {
			if !slices.Contains(got, text) {
				t.Errorf("%s\nnot found: %s", lines.Bytes(), text)
			}
		}
	}
	if err := lines.Err(); err != nil || count < 100 {
		t.Fatalf("%d schemas, %v", count, err)
	}
}
