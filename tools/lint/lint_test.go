package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/services/ledger"
)

// TestWorkspace applies every rule to the workspace. Run it with -count=1, because the test
// cache does not notice changes in other modules.
func TestWorkspace(t *testing.T) {
	w, err := Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.Modules) < 2 || len(w.Packages) < 2 {
		t.Fatalf("found %d modules and %d packages: the loader is broken", len(w.Modules), len(w.Packages))
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range rule.Check(w) {
				t.Errorf("%s: %s\n\tadvice: %s", f.Where, f.What, rule.Advice)
			}
		})
	}
}

// TestRulesFind applies each rule to a small workspace that violates it.
func TestRulesFind(t *testing.T) {
	const doc = "// Package %s is a sample, and its comment is long enough for the rule that requires a comment of every package.\n"
	long := func(name string, lines int) string {
		return "func " + name + "() {\n" + strings.Repeat("\t_ = 1\n", lines) + "}\n"
	}
	cases := []struct{ rule, file, source string }{
		{"a module imports services and services/kit", "store/a.go", `import _ "github.com/portico-platform/portico/authz"`},
		{"a module imports services and services/kit", "services/a.go", `import _ "github.com/portico-platform/portico/services/kit/run"`},
		{"the contracts have few dependencies", "services/go.mod", "module github.com/portico-platform/portico/services\n\nrequire go.etcd.io/etcd/client/v3 v3.7.3\n"},
		{"the contracts have few dependencies", "services/go.mod", "module github.com/portico-platform/portico/services\n\nrequire github.com/nats-io/nats.go v1.55.0 // indirect\n"},
		{"a module imports services and services/kit", "admission/sdk/a.go", `import _ "github.com/portico-platform/portico/services/kit/run"`},
		{"a module imports services and services/kit", "admission/examples/one/a.go", `import _ "github.com/portico-platform/portico/services/kit/run"`},
		{"a module imports services and services/kit", "store/a.go", `import _ "github.com/portico-platform/portico/admission/sdk"`},
		{"the contracts have few dependencies", "admission/sdk/go.mod", "module github.com/portico-platform/portico/admission/sdk\n\nrequire k8s.io/client-go v0.37.2\n"},
		{"the layers of the front door", "frontdoor/internal/wire/a.go", `import _ "github.com/portico-platform/portico/frontdoor/internal/handlers/reads"`},
		{"the layers of the front door", "frontdoor/internal/thing/a.go", ""},
		{"files have at most", "store/a.go", strings.Repeat("// line\n", maxFile)},
		{"nine of ten files", "store/a.go", strings.Repeat("// line\n", p90File)},
		{"functions have at most 80", "store/a.go", long("f", maxFunc)},
		{"nine of ten functions", "store/a.go", long("f", p90Func)},
		{"functions have at most 4 parameters", "store/a.go", "func f(ctx context.Context, a, b int, c, d, e string) {}"},
		{"packages have at most", "store/a.go", strings.Repeat("// line\n", maxPackage)},
		{"every package has a comment", "store/a/a.go", "package a"},
		{"no package has a generic name", "store/utils/a.go", ""},
		{"upstream names", "store/a.go", `const name = "x.k8s.io"`},
		{"no init functions", "store/a.go", "func init() {}"},
		{"no mutable package state", "store/a.go", "var n int\nfunc f() { n++ }"},
		{"no mutable package state", "store/a.go", "var m = map[string]int{}\nfunc f() { m[`a`] = 1 }"},
		{"no mutable package state", "store/a.go", "var lock sync.Mutex"},
		{"no mutable package state", "store/a.go", "var p atomic.Pointer[int]"},
		{"the architecture page", "docs/architecture.md", "nothing"},
		{"names and comments use", "store/a.go", "// f tells whether it is so.\nfunc f() {}"},
		{"names and comments use", "store/a.go", "func furnish() {}"},
		{"names and comments use", "store/a.go", "// f reads what has no\n// room for it.\nfunc f() {}"},
		{"names and comments use", "frontdoor/internal/wire/table/a.go", "// f is for whoever comes.\nfunc f() {}"},
		{"names and comments use", "frontdoor/internal/wire/a.go", "func wanted() {}"},
		{"texts for clients", "store/a.go", "func checkReplicas() {}\nconst text = `Number of replicas that are checkReplicas.`"},
		{"texts for clients", "store/a.go", "type oneThing struct{}\nconst text = `there is (oneThing) too many`"},
		{"comments cite sections", "store/a.go", "// f serves \"Watching\" and\n// \"Paths\".\nfunc f() {}"},
		{"every test that the security page", "docs/security.md", "`store/a_test.go:TestNone`"},
		{"every test that the security page", "docs/security.md", "nothing"},
		{"the pages that walk", "docs/request.md", "in `store/none.go`"},
		{"the pages that walk", "docs/request.md", "| a | `none` | b | c |"},
		{"the pages that walk", "docs/watch.md", "in `store/none`"},
		{"the request page lists", "docs/request.md", "| stage | what it does | where |\n| first | b | c |"},
		{"links between pages", "store/README.md", "[a](none.md)"},
		{"links between pages", "store/README.md", "![a](../docs/none.png)"},
		{"links between pages", "store/README.md", "[a](../docs/api.md#nothing)"},
		{"links between pages", "store/README.md", "# One\n\n[a](#two)"},
		{"command blocks", "store/README.md", "Run\n\n    make check\n"},
		{"command blocks", "store/README.md", "```\nA=1 kubectl get pods\n```\n"},
		{"command blocks", "store/README.md", "```sh not today\nmake check\n```\n"},
		{"errors are compared", "store/a.go", "func f(err error) bool { return err == io.EOF }"},
		{"errors are compared", "store/a.go", "func f(err error) bool { _, ok := err.(*x); return ok }"},
		{"errors are compared", "store/a.go", "func f(err error) { switch err.(type) {} }"},
		{"errors are compared", "store/a.go", "func f(err error) { switch err { case io.EOF: } }"},
		{"errors are compared", "store/a.go", "func f(err error) error { return fmt.Errorf(`reading: %v`, err) }"},
		{"every metric is listed", "store/a.go", "var o = prometheus.GaugeOpts{Subsystem: `store`, Name: `none`}"},
		{"every metric is listed", "store/a.go", "const prefix = `none`\nvar d = prometheus.NewDesc(prefix+`_total`, ``, nil, nil)"},
		{"every metric is listed", "store/a.go", "func f() { m := func(name string) any { return prometheus.GaugeOpts{Name: `portico_` + name} }; m(`listed`); m(`none`) }"},
		{"no sleeps", "store/a_test.go", "func f() { time.Sleep(1) }"},
		{"no times that jump", "store/a.go", "func f(a *atomic.Int64) { a.Store(time.Now().Add(1).UnixNano()) }"},
		{"no times that jump", "store/a.go", "type x struct{ a atomic.Int64 }\nfunc f(v *x) { now := time.Now().Unix(); v.a.CompareAndSwap(0, now+1) }"},
		{"no times that jump", "store/a.go", "func f(a *int64) { atomic.StoreInt64(a, time.Now().Unix()) }"},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			root := t.TempDir()
			source := c.source
			name := filepath.Base(filepath.Dir(c.file))
			if filepath.Ext(c.file) == ".go" && !strings.HasPrefix(source, "package") {
				source = fmt.Sprintf(doc+"package %s\n", name, name) + source
			}
			write(t, filepath.Join(root, "docs/architecture.md"), "frontdoor store services admission/sdk admission/examples/one")
			write(t, filepath.Join(root, "docs/api.md"), "# API\n\n## Paths\n")
			write(t, filepath.Join(root, metricsFile), "portico_listed gauge - store\n")
			write(t, filepath.Join(root, matrixPage), textTable())
			write(t, filepath.Join(root, c.file), source)
			got := broken(t, root)
			if !slices.ContainsFunc(got, func(name string) bool { return strings.HasPrefix(name, c.rule) }) {
				t.Errorf("broken rules: %q", got)
			}
		})
	}
}

// TestRulesAccept applies the rules to a workspace without violations.
func TestRulesAccept(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "docs/architecture.md"), "frontdoor store services admission/sdk admission/examples/one")
	write(t, filepath.Join(root, "docs/api.md"), "# API\n\n## Paths\n")
	write(t, filepath.Join(root, "store/store.go"), `// Package store follows the rules. It has a comment that is long enough, and read-only tables.
// It also has functions.
package store

import (
	_ "github.com/portico-platform/portico/services/kit/run"
	_ "github.com/portico-platform/portico/services/resource"
)

// table is only read.
var table = map[string]int{"a": 1}

func wrap(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	if reportOnly {
		return fmt.Errorf("last answer: %v", err) //nolint:errorlint // may be nil
	}
	return fmt.Errorf("reading: %w", err)
}

// keep has no atomic.
func keep(seen *sync.Map) { seen.Store(time.Now().Unix(), true) }

// See x.k8s.io: comments may contain upstream names.
func read(ctx context.Context, a, b, c, d int) int {
	table := map[string]int{}
	table["b"] = 2
	return table["a"]
}
`)
	write(t, filepath.Join(root, metricsFile), "portico_one gauge - store\nportico_two_total counter - store used\n")
	write(t, filepath.Join(root, "store/metrics.go"), "package store\n\nvar one = prometheus.NewDesc(`portico_one`, ``, nil, nil)\n\n"+
		"func counter(name string) any {\n\treturn prometheus.CounterOpts{Namespace: `portico`, Name: name}\n}\n\nvar two = counter(`two_total`)\n")
	write(t, filepath.Join(root, "store/generated.go"), "// Code generated by a tool. DO NOT EDIT.\n\npackage store\n\nfunc init() {}\n")
	write(t, filepath.Join(root, "store/store_test.go"), "package store_test\n\nconst name = `x.k8s.io`\n\nfunc TestStore(t *testing.T) {}\n\nvar trial = Trial{Name: \"Stolen\"}\n")
	write(t, filepath.Join(root, "README.md"), "# A title: `code`\n\n[a](docs/api.md#paths) [b](store) [c](#a-title-code) [d](https://example.com/none)\n\n    [e](none)\n\n```sh norun=takes-minutes\nmake\n```\n\n```sh\nkubectl get pods\n```\n")
	write(t, filepath.Join(root, "docs/security.md"), "`store/store_test.go:TestStore` and `store/store_test.go:Stolen`")
	write(t, filepath.Join(root, matrixPage), textTable())
	write(t, filepath.Join(root, "docs/request.md"), "| stage | what it does | where |\n| first | b | `store/store.go` |\n\n## Writes\n\n| a | `wrap` | b | c |\n")
	write(t, filepath.Join(root, "docs/watch.md"), "1. **The store** (`store`)")
	write(t, filepath.Join(root, "frontdoor/pipeline.go"), "// Package frontdoor has one stage. This comment is long enough for the rule that\n// every package has a comment of some length.\n"+
		"package frontdoor\n\nvar stages = []Stage{{Name: \"first\", Wrap: wrap}}\n")
	if got := broken(t, root); len(got) > 0 {
		t.Errorf("broken rules: %q", got)
	}
}

// textTable returns a complete table of texts.
func textTable() (table string) {
	for _, text := range ledger.All() {
		table += "\n" + textRow(text) + " an owner |"
	}
	return table
}

// broken returns the names of the rules with findings in a small workspace.
func broken(t *testing.T, root string) (names []string) {
	t.Helper()
	write(t, filepath.Join(root, "go.work"), "go 1.26.0\n\nuse (\n\t./admission/examples/one\n\t./admission/sdk\n\t./frontdoor\n\t./services\n\t./store\n)\n")
	for _, module := range []string{"admission/examples/one", "admission/sdk", "frontdoor", "services", "store"} {
		if _, err := os.Stat(filepath.Join(root, module, "go.mod")); err == nil {
			continue // part of the case
		}
		write(t, filepath.Join(root, module, "go.mod"), "module github.com/portico-platform/portico/"+module+"\n")
	}
	w, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		if len(rule.Check(w)) > 0 {
			names = append(names, rule.Name)
		}
	}
	return names
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
