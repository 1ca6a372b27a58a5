package validations

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/structural"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services/kit/cel"
	"github.com/portico-platform/portico/services/release"
)

// TestDefinitions compares the errors of rules with those of apiextensions-apiserver
// 0.37.2, and those of the neutral vocabulary with both.
func TestDefinitions(t *testing.T) {
	file, err := os.Open("testdata/definitions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	engine := cel.New(cel.Config{Release: release.V136})
	lines, count := bufio.NewScanner(file), 0
	for ; lines.Scan(); count++ {
		for _, extension := range []string{"x-kubernetes-", "x-platform-"} {
			line := strings.ReplaceAll(lines.Text(), "x-kubernetes-", extension)
			var c struct {
				Schema map[string]any `json:"schema"`
				Causes []string       `json:"causes"`
			}
			if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			got := []string{}
			form := structural.Schemas{Extension: extension}
			form.Check(c.Schema, (*field.Path)(nil).Field("s"))
			found := Check(c.Schema, "s", Definition{Extension: extension, Environment: engine.Base(), Malformed: form.Any()})
			for _, cause := range append(found, form.Causes()...) {
				got = append(got, cause.Reason+" "+cause.Field+": "+cause.Message)
			}
			slices.Sort(got)
			slices.Sort(c.Causes)
			if !slices.Equal(got, c.Causes) {
				t.Errorf("%s\ngot  %s\nwant %s", line, strings.Join(got, "\n     "), strings.Join(c.Causes, "\n     "))
			}
		}
	}
	if err := lines.Err(); err != nil || count < 30 {
		t.Fatalf("%d schemas, %v", count, err)
	}
}

// What a stored definition uses stays valid, and so does the cost of an unchanged schema.
func TestStoredDefinitions(t *testing.T) {
	r, err := release.Of("1.30")
	if err != nil {
		t.Fatal(err)
	}
	engine := cel.New(cel.Config{Release: r})
	schema := func(items int64, rule string) map[string]any {
		return map[string]any{"type": "object", "properties": map[string]any{"list": map[string]any{"type": "array", "maxItems": items, "items": map[string]any{"type": "string", "maxLength": int64(99)},
			"x-kubernetes-validations": []any{map[string]any{"rule": rule}}}}}
	}
	newer, expensive := schema(5, `semver('1.2.3').major() == 1`), schema(100_000, `self.all(a, self.all(b, a == b))`)
	d := Definition{Extension: "x-kubernetes-", Environment: engine.Base()}
	if len(Check(newer, "s", d)) != 1 || len(Check(expensive, "s", d)) == 0 {
		t.Error("a new definition is accepted")
	}
	d.Stored = []map[string]any{newer}
	if found := Check(newer, "s", d); len(found) > 0 {
		t.Error(found)
	}
	d.Unchanged = true
	for _, cause := range Check(expensive, "s", d) {
		if strings.Contains(cause.Message, "estimated rule cost exceeds") {
			t.Error(cause)
		}
	}
}
