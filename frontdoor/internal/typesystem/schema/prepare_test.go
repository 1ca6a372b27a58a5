package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue/runtimeconfig"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds/builtin"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/field"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/golden"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// testCase is one case: an object and the expected results. The file has both input and
// output.
type testCase struct {
	Type  string          `json:"type"` // group/version/resource
	Mode  FieldValidation `json:"mode,omitempty"`
	Given map[string]any  `json:"given"`
	Old   map[string]any  `json:"old,omitempty"`
	// Subresource is the subresource that the request writes.
	Subresource string         `json:"subresource,omitempty"`
	Prepared    map[string]any `json:"prepared,omitempty"`
	Warnings    []string       `json:"warnings,omitempty"`
	Error       string         `json:"error,omitempty"`  // of Prepare
	Causes      []string       `json:"causes,omitempty"` // of Validate
}

// TestGolden runs all cases in testdata. After an intended change, run it with -update and
// review the difference.
func TestGolden(t *testing.T) {
	types, engine := newEngine(t)
	golden.Run(t, func(t *testing.T, _ string, c testCase) testCase { return run(t, types, engine, c) })
}

func run(t *testing.T, types *catalogue.Catalogue, engine *Engine, c testCase) testCase {
	t.Helper()
	part := strings.Split(c.Type, "/")
	ty, ok := types.Lookup(part[0], part[1], part[2])
	if !ok {
		t.Fatalf("no type %s", c.Type)
	}
	got := testCase{Type: c.Type, Mode: c.Mode, Given: c.Given, Old: c.Old, Subresource: c.Subresource}
	object := decode(t, dump(t, c.Given))
	mode := c.Mode
	if mode == "" {
		mode = Warn
	}
	warnings, err := engine.Prepare(t.Context(), ty, object, mode)
	got.Warnings = warnings
	if err != nil {
		got.Error = err.Error()
		return got
	}
	got.Prepared = object
	var old map[string]any
	if c.Old != nil {
		old = decode(t, dump(t, c.Old))
		if _, err := engine.Prepare(t.Context(), ty, old, Ignore); err != nil {
			t.Fatal(err)
		}
	}
	if err := engine.ValidateChange(t.Context(), Change{Type: ty, Subresource: c.Subresource, Object: object, Old: old}); err != nil {
		got.Prepared = nil
		var s *services.Status
		if !errors.As(err, &s) {
			t.Fatal(err)
		}
		for _, cause := range s.Details.Causes {
			got.Causes = append(got.Causes, cause.Field+": "+cause.Message)
		}
	}
	return got
}

func newEngine(t testing.TB) (*catalogue.Catalogue, *Engine) {
	t.Helper()
	return newEngineOf(t, release.V121)
}

func newEngineOf(t testing.TB, r release.Release) (*catalogue.Catalogue, *Engine) {
	t.Helper()
	c, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.Platform(), Release: r, RuntimeConfig: runtimeconfig.Config{"api/alpha": true, "api/beta": true}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := builtin.Read()
	if err != nil {
		t.Fatal(err)
	}
	return c, New(c, vocabulary.Platform(), set.In(r))
}

func decode(t testing.TB, text string) map[string]any {
	t.Helper()
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func dump(t testing.TB, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRulesNameTheDocument finds rules for definitions and fields that the document does
// not have: typing errors would otherwise have no effect.
func TestRulesNameTheDocument(t *testing.T) {
	used := map[string]bool{}
	for _, r := range []release.Release{release.V121, release.V136} {
		_, engine := newEngineOf(t, r)
		for name, s := range engine.definitions.All() {
			used[shortName(name)] = true
			rules := engine.rules[shortName(name)]
			if rules == nil {
				continue
			}
			named := slices.Concat(rules.Required, rules.Optional, rules.Fixed, rules.Once, rules.OneOf, rules.AtMostOne,
				slices.Collect(maps.Keys(rules.Fields)), slices.Collect(maps.Keys(rules.Defaults)))
			for _, field := range named {
				if _, ok := s.Properties[field]; !ok {
					t.Errorf("%s has no field %s in release %s", name, field, r)
				}
			}
		}
	}
	_, engine := newEngine(t)
	for name := range engine.rules {
		if !used[name] {
			t.Errorf("the documents have no definition %s", name)
		}
	}
}

// TestEveryTypeCompiles prepares and validates an empty object of every type.
func TestEveryTypeCompiles(t *testing.T) {
	for _, r := range []release.Release{release.V121, release.V136} {
		types, engine := newEngineOf(t, r)
		for _, group := range types.Groups() {
			for _, version := range group.Versions {
				for _, ty := range version.Types {
					object := map[string]any{"apiVersion": ty.APIVersion(), "kind": ty.Kind, "metadata": map[string]any{"name": "a"}}
					if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
						t.Errorf("%s: %s %s: %v", r, ty.APIVersion(), ty.Kind, err)
					}
					wantNoFault(t, ty, engine.Validate(t.Context(), ty, object, nil))
				}
			}
		}
	}
}

// wantNoFault fails unless a validation returned nil, or a 422 whose causes all have a
// field and a message.
func wantNoFault(t *testing.T, ty *catalogue.Type, err error) {
	t.Helper()
	var s *services.Status
	if err == nil {
		return
	}
	if !errors.As(err, &s) || s.Code != http.StatusUnprocessableEntity || s.Details == nil || len(s.Details.Causes) == 0 {
		t.Errorf("%s %s: %v", ty.APIVersion(), ty.Kind, err)
		return
	}
	for _, c := range s.Details.Causes {
		if c.Field == "" || c.Message == "" {
			t.Errorf("%s %s: a cause without a field or a message: %+v", ty.APIVersion(), ty.Kind, c)
		}
	}
}

// TestConcurrentUse compiles and uses all types from several goroutines at once.
func TestConcurrentUse(t *testing.T) {
	types, engine := newEngine(t)
	var group sync.WaitGroup
	found := make([][]string, 4)
	for i := range found {
		group.Go(func() {
			for _, name := range []string{"deployments", "statefulsets", "daemonsets", "replicasets"} {
				ty, _ := types.Lookup("apps", "v1", name)
				object := map[string]any{"metadata": map[string]any{"name": "a"}}
				if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
					t.Error(err)
				}
				err := engine.Validate(t.Context(), ty, object, nil)
				wantNoFault(t, ty, err)
				found[i] = append(found[i], fmt.Sprint(object, err))
			}
		})
	}
	group.Wait()
	for _, other := range found[1:] {
		if !slices.Equal(found[0], other) {
			t.Errorf("one found\n%s\nanother\n%s", found[0], other)
		}
	}
}

// FuzzPrepare prepares and validates arbitrary objects: each is rejected or prepared, and
// preparing it again changes nothing.
// TestFindingsOfYAML: the findings of a YAML decoder are one error.
func TestFindingsOfYAML(t *testing.T) {
	line, unknown := `line 5: key "name" already set in map`, `unknown field "x"`
	for _, c := range [][2][]string{
		{{line, line, unknown}, {"yaml: unmarshal errors:\n  " + line + "\n  " + line, unknown}},
		{{unknown, unknown}, {unknown, unknown}},
		{nil, nil},
	} {
		if got := field.OneOfYAML(c[0]); !slices.Equal(got, c[1]) {
			t.Errorf("%q: %q", c[0], got)
		}
	}
}

func FuzzPrepare(f *testing.F) {
	types, engine := newEngine(f)
	ty, _ := types.Lookup("", "v1", "pods")
	f.Add(`{"metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b","resources":{"limits":{"cpu":0.5}}}],"volumes":[{"name":"v"},null]}}`)
	f.Add(`{"metadata":[],"spec":{"containers":[null,{}],"tolerations":[{"operator":"Exists"}]},"status":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &object) != nil || object == nil {
			return
		}
		if _, err := engine.Prepare(t.Context(), ty, object, Ignore); err != nil {
			return
		}
		once := dump(t, object)
		if _, err := engine.Prepare(t.Context(), ty, object, Strict); err != nil {
			t.Fatalf("a prepared object is refused: %v", err)
		}
		if again := dump(t, object); again != once {
			t.Fatalf("prepared again:\n%s\nonce:\n%s", again, once)
		}
		_ = engine.Validate(t.Context(), ty, object, object)
	})
}
