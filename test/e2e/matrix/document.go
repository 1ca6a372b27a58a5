package matrix

import (
	"os"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/golden"
)

// document is the file with the tables, relative to the tests.
const document = "../../docs/security-matrix.md"

// table is rendered as Markdown.
type table struct{ text strings.Builder }

func newTable(first string, columns ...string) *table {
	t := &table{}
	t.add(first, columns...)
	t.text.WriteString(strings.Repeat("|---", 1+len(columns)) + "|\n")
	return t
}

func (t *table) add(first string, cells ...string) {
	t.text.WriteString("| " + strings.Join(append([]string{first}, cells...), " | ") + " |\n")
}

// compare compares a table with that of the document between the marks of its name. With
// -update it replaces it.
func compare(t *testing.T, name string, got *table) {
	t.Helper()
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), "<!-- table: "+name+" -->\n\n")
	want, after, ended := strings.Cut(rest, "\n<!-- end -->")
	if !found || !ended {
		t.Fatalf("%s has no table %q", document, name)
	}
	if want == got.text.String() {
		return
	}
	if golden.Updating() {
		content := before + "<!-- table: " + name + " -->\n\n" + got.text.String() + "\n<!-- end -->" + after
		if err := os.WriteFile(document, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s, table %q: got\n%s\nwant\n%s\nAn intended change is written by -update.", document, name, got.text.String(), want)
}
