package test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	goyaml "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var update = flag.Bool("update", false, "write the table of values")

const readme = chart + "/README.md"

// TestTableOfValues compares the table in the chart's README with values.yaml, in which
// comments that begin with -- describe the values.
func TestTableOfValues(t *testing.T) {
	content, err := os.ReadFile(chart + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document goyaml.Node
	if err := goyaml.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| value | default | |\n|---|---|---|\n")
	row(&table, "", document.Content[0])
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), "| value | default | |\n")
	if !ok {
		t.Fatal("the README has no table of values")
	}
	if *update {
		if err := os.WriteFile(readme, []byte(before+table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != before+table.String() {
		t.Error("the table of values is not that of values.yaml: go test ./deploy/helm/test -run TestTableOfValues -args -update")
	}
}

// row writes a row for each value, and one for each group that has a comment.
func row(table *strings.Builder, path string, node *goyaml.Node) {
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		_, about, _ := strings.Cut(key.HeadComment, "# -- ")
		about = strings.ReplaceAll(about, "|", "\\|")
		if value.Kind == goyaml.MappingNode && len(value.Content) > 0 && value.Style&goyaml.FlowStyle == 0 {
			if about != "" {
				fmt.Fprintf(table, "| **`%s`** | | %s |\n", name, about)
			}
			row(table, name, value)
			continue
		}
		var plain any
		if err := value.Decode(&plain); err != nil {
			panic(err)
		}
		text, err := json.Marshal(plain)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(table, "| `%s` | `%s` | %s |\n", name, text, about)
	}
}

// resourceOf reads a resource from its path, as in apps/v1/deployments.
func resourceOf(path string) schema.GroupVersionResource {
	parts := strings.Split(path, "/")
	if len(parts) == 2 {
		parts = append([]string{""}, parts...)
	}
	return schema.GroupVersionResource{Group: parts[0], Version: parts[1], Resource: parts[2]}
}

func jsonOf(v any) (string, error) {
	content, err := json.Marshal(v)
	return string(content), err
}
