package table_test

import (
	"encoding/json"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire/table"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzCells computes rows of every type for arbitrary objects: the result is valid JSON
// with one cell per column.
func FuzzCells(f *testing.F) {
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform()})
	if err != nil {
		f.Fatal(err)
	}
	var definitions []*table.Definition
	for _, group := range c.Groups() {
		for _, version := range group.Versions {
			for _, t := range version.Types {
				definitions = append(definitions, table.Define(t.Columns, vocabulary.Platform()))
			}
		}
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var o map[string]any
		if json.Unmarshal(object, &o) != nil || o == nil {
			return // stored values are objects
		}
		for _, d := range definitions {
			text := "[" + string(d.Cells(object).Append(nil, now)) + "]"
			var values, columns []any
			if json.Unmarshal([]byte(text), &values) != nil || json.Unmarshal(d.Columns(), &columns) != nil || len(values) != len(columns) {
				t.Errorf("%s is shown as %s for %s", object, text, d.Columns())
			}
		}
	})
}
