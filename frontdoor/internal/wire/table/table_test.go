package table_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/wire/table"
	"github.com/portico-platform/portico/services/vocabulary"
)

var now = time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)

func types(t *testing.T) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cells returns the cells of an object by the names of their columns.
func cells(t *testing.T, columns []kinds.Column, object []byte) map[string]any {
	t.Helper()
	d := table.Define(columns, vocabulary.K8s())
	text := "[" + string(d.Cells(object).Append(nil, now)) + "]"
	var values []any
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	var definitions []struct{ Name string }
	if err := json.Unmarshal(d.Columns(), &definitions); err != nil {
		t.Fatal(err)
	}
	if len(values) != len(definitions) {
		t.Fatalf("%d cells for %d columns", len(values), len(definitions))
	}
	named := map[string]any{}
	for i, definition := range definitions {
		named[definition.Name] = values[i]
	}
	return named
}

// TestCells runs the cases of testdata: objects, and the expected cells.
func TestCells(t *testing.T) {
	catalogue := types(t)
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			What   string
			Object map[string]any
			Cells  map[string]any
		}
		if err := yaml.UnmarshalStrict(text, &cases); err != nil {
			t.Fatal(file, err)
		}
		for _, c := range cases {
			t.Run(c.What, func(t *testing.T) {
				gv, err := schema.ParseGroupVersion(c.Object["apiVersion"].(string))
				if err != nil {
					t.Fatal(err)
				}
				kind, ok := catalogue.ByKind(gv.Group, gv.Version, c.Object["kind"].(string))
				if !ok {
					t.Fatal("no such kind")
				}
				object, err := json.Marshal(c.Object)
				if err != nil {
					t.Fatal(err)
				}
				got := cells(t, kind.Columns, object)
				for name, want := range c.Cells {
					if value, ok := got[name]; !ok || value != want {
						t.Errorf("%s is %v (shown: %v), want %v", name, value, ok, want)
					}
				}
			})
		}
	}
}

// TestEmptyObjects computes the row of an empty object of each type.
func TestEmptyObjects(t *testing.T) {
	c := types(t)
	for _, group := range c.Groups() {
		for _, version := range group.Versions {
			for _, kind := range version.Types {
				cells(t, kind.Columns, []byte(`{"metadata":{"name":"a"}}`))
			}
		}
	}
}

func TestDefaultColumns(t *testing.T) {
	got := cells(t, nil, []byte(`{"metadata":{"name":"a","creationTimestamp":"2026-01-01T00:00:00Z"}}`))
	want := map[string]any{"Name": "a", "Created At": "2026-01-01T00:00:00Z"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPaths(t *testing.T) {
	object := []byte(`{"metadata":{"name":"a","labels":{"x.y/z":"dotted"}},"spec":{"size":7,"ratio":0.5,"on":false,"text":"t","big":7.9,
		"since":"2026-01-05T23:00:00Z","list":[{"n":"p"},{"n":"q"}],"map":{"k":1}},"status":{"conditions":[{"type":"A","status":"no"},{"type":"Ready","status":"yes"}]}}`)
	for _, c := range []struct {
		cell, kind, absent string
		want               any
	}{
		{".spec.size", "integer", "", 7.0},
		{".spec.big", "integer", "", 7.0},
		{".spec.size", "string", "", "7"},
		{".spec.ratio", "number", "", 0.5},
		{".spec.on", "boolean", "", false},
		{".spec.text", "integer", "", nil},
		{".spec.text", "boolean", "", nil},
		{".spec.map", "string", "", `{"k":1}`},
		{".spec.since", "date", "", "60m"},
		{".spec.text", "date", "", "<unknown>"},
		{".spec.missing", "date", "", nil},
		{".spec.missing", "string", "", nil},
		{".spec.missing", "string", "<none>", "<none>"},
		{".spec.missing", "integer", "0", 0.0},
		{`.metadata.labels.x\.y/z`, "string", "", "dotted"},
		{`custom .metadata.labels['x\.y/z']`, "string", "", "dotted"},
		{"custom .spec.list[1].n", "string", "", "q"},
		{"custom .spec.list[*].n", "string", "", "p"},
		{`custom .status.conditions[?(@.type=="Ready")].status`, "string", "", "yes"},
		{`custom .status.conditions[?(@.type=="None")].status`, "string", "", nil},
		{"custom .spec.list[", "string", "", nil},
		{"nonsense", "string", "", nil},
	} {
		got := cells(t, []kinds.Column{{Name: "x", Type: c.kind, Cell: c.cell, Absent: c.absent}}, object)["x"]
		if got != c.want {
			t.Errorf("%s as %s is %v, want %v", c.cell, c.kind, got, c.want)
		}
	}
}

// TestCustomCells: cells of custom types are as kube-apiserver shows them: what is of another type than the
// column is null, as text it is printed, and a date that is none is invalid.
func TestCustomCells(t *testing.T) {
	for _, c := range []struct{ value, path, text, integer, number, boolean, date string }{
		{`7`, ".a", `"7"`, "7", "7", "null", "null"},
		{`7.9`, ".a", `"7.9"`, "7", "7.9", "null", "null"},
		{`-3`, ".a[0]", "null", "null", "null", "null", "null"},
		{`123456789012345678`, ".a", `"123456789012345678"`, "123456789012345678", "123456789012345680", "null", "null"},
		{`100000000000000000000`, ".a", `"1e+20"`, "-9223372036854775808", "100000000000000000000", "null", "null"},
		{`1e21`, ".a", `"1e+21"`, "-9223372036854775808", "1e+21", "null", "null"},
		{`true`, ".a", `"true"`, "null", "null", "true", "null"},
		{`null`, ".a", `"<no value>"`, "null", "null", "null", "null"},
		{`[null]`, ".a[0]", `"<no value>"`, "null", "null", "null", "null"},
		{`{}`, ".a.b", "null", "null", "null", "null", "null"},
		{`{"b":null}`, ".a.b", `"<no value>"`, "null", "null", "null", "null"},
		{`"5"`, ".a", `"5"`, "null", "null", "null", `"<invalid>"`},
		{`""`, ".a", `""`, "null", "null", "null", `"<unknown>"`},
		{`"<x>"`, ".a", `"<x>"`, "null", "null", "null", `"<invalid>"`},
		{`"2026-01-05T23:00:00Z"`, ".a", `"2026-01-05T23:00:00Z"`, "null", "null", "null", `"60m"`},
		{`"2026-01-06T01:00:00+02:00"`, ".a", `"2026-01-06T01:00:00+02:00"`, "null", "null", "null", `"60m"`},
		{`"2026-01-05T23:00:00.5Z"`, ".a", `"2026-01-05T23:00:00.5Z"`, "null", "null", "null", `"59m"`},
		{`"2026-01-05"`, ".a", `"2026-01-05"`, "null", "null", "null", `"<invalid>"`},
		{`"2099-01-05T23:00:00Z"`, ".a", `"2099-01-05T23:00:00Z"`, "null", "null", "null", `"<invalid>"`},
		{`[1,2.0,"x",null,{"z":1,"b":"<"}]`, ".a", `"[1,2,\"x\",null,{\"b\":\"\\u003c\",\"z\":1}]"`, "null", "null", "null", "null"},
		{`[1,2]`, ".a[*]", `"1"`, "1", "1", "null", "null"},
		{`[1,2]`, ".a[-1]", `"2"`, "2", "2", "null", "null"},
		{`[[1],[2]]`, ".a[*]", `"[1]"`, "null", "null", "null", "null"},
		{`[]`, ".a[*]", "null", "null", "null", "null", "null"},
		{`[]`, ".a[3]", "null", "null", "null", "null", "null"},
		{`"s"`, ".a.*", `"115"`, "null", "null", "null", "null"},
		{`[{"n":"x","v":123456789012345678}]`, `.a[?(@.n=="x")].v`, `"123456789012345678"`, "123456789012345678", "123456789012345680", "null", "null"},
	} {
		columns := []kinds.Column{}
		for _, of := range []string{"string", "integer", "number", "boolean", "date"} {
			columns = append(columns, kinds.Column{Name: of, Type: of, Cell: "custom " + c.path})
		}
		row := table.Define(columns, vocabulary.K8s()).Cells([]byte(`{"metadata":{"name":"x"},"a":` + c.value + `}`))
		got, want := string(row.Append(nil, now)), strings.Join([]string{c.text, c.integer, c.number, c.boolean, c.date}, ",")
		if got != want {
			t.Errorf("%s of %s: %s, want %s", c.path, c.value, got, want)
		}
	}
}

// TestAgesPass writes one row at two times.
func TestAgesPass(t *testing.T) {
	d := table.Define([]kinds.Column{{Name: "Age", Type: "string", Cell: "age"}, {Name: "Name", Type: "string", Cell: ".metadata.name"}}, vocabulary.K8s())
	row := d.Cells([]byte(`{"metadata":{"name":"a","creationTimestamp":"2026-01-06T00:00:00Z"}}`))
	for _, c := range []struct {
		after time.Duration
		want  string
	}{{time.Second, `"1s","a"`}, {3 * time.Hour, `"3h","a"`}} {
		if got := string(row.Append(nil, now.Add(c.after))); got != c.want {
			t.Errorf("after %v: %s, want %s", c.after, got, c.want)
		}
	}
}

// TestRowConditions: only a pod that has ended has conditions of its row.
func TestRowConditions(t *testing.T) {
	c := types(t)
	pods, _ := c.ByKind("", "v1", "Pod")
	jobs, _ := c.ByKind("batch", "v1", "Job")
	for _, test := range []struct {
		columns []kinds.Column
		phase   string
		want    string
	}{
		{pods.Columns, "Running", ""},
		{pods.Columns, "Failed", `[{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}]`},
		{pods.Columns, "Succeeded", `[{"type":"Completed","status":"True","reason":"Succeeded","message":"The pod has completed successfully."}]`},
		{jobs.Columns, "Failed", ""},
	} {
		d := table.Define(test.columns, vocabulary.K8s())
		if got := d.Cells([]byte(`{"metadata":{"name":"a"},"status":{"phase":"` + test.phase + `"}}`)).Conditions; got != test.want {
			t.Errorf("%s: got %s, want %s", test.phase, got, test.want)
		}
	}
}
