package builtin

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// TestFunctions: the names in files equal those of the Go functions, and each function is
// used by a file. Read returns an error for unknown functions.
func TestFunctions(t *testing.T) {
	set, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	note := func(lists ...[]string) {
		for _, names := range lists {
			for _, name := range names {
				used[name] = true
			}
		}
	}
	for _, r := range set.Definitions {
		note(r.Checks, r.Derive)
		for _, later := range r.Since {
			note(later.Checks, later.Derive)
		}
	}
	for _, k := range set.Kinds {
		note(k.PrepareCreate, k.PrepareUpdate, k.CountChange, k.PrepareDelete, []string{k.GracePeriod})
		for _, c := range k.Columns {
			name, _ := c.Computed()
			note([]string{name, c.RowConditions})
		}
	}
	check(t, set.Functions.Checks, used)
	check(t, set.Functions.Derive, used)
	check(t, set.Functions.Prepare, used)
	check(t, set.Functions.Grace, used)
	check(t, set.Functions.Cells, used)
	check(t, set.Functions.Rows, used)
}

func check[F any](t *testing.T, functions map[string]F, used map[string]bool) {
	for name, function := range functions {
		full := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
		if goName := full[strings.LastIndex(full, ".")+1:]; goName != name {
			t.Errorf("%s is called %s in Go", name, goName)
		}
		if !used[name] {
			t.Errorf("no file names %s", name)
		}
	}
}

// TestUnknownFunction: the error for an unknown function contains its place.
func TestUnknownFunction(t *testing.T) {
	for _, set := range []*kinds.Set{
		{Definitions: map[string]*kinds.Rules{"core.v1.Pod": {Checks: []string{"nothingSuch"}}}},
		{Kinds: []*kinds.Kind{{Resource: "core.v1.Pod", Behavior: kinds.Behavior{PrepareDelete: []string{"nothingSuch"}}}}},
		{Kinds: []*kinds.Kind{{Resource: "core.v1.Pod", Behavior: kinds.Behavior{GracePeriod: "nothingSuch"}}}},
		{Kinds: []*kinds.Kind{{Resource: "core.v1.Pod", Columns: []kinds.Column{{Cell: "nothingSuch"}}}}},
		{Kinds: []*kinds.Kind{{Resource: "core.v1.Pod", Columns: []kinds.Column{{Cell: ".a", RowConditions: "nothingSuch"}}}}},
	} {
		if err := set.Resolve(kinds.Functions{}); err == nil || !strings.Contains(err.Error(), "core.v1.Pod") || !strings.Contains(err.Error(), "nothingSuch") {
			t.Errorf("got %v", err)
		}
	}
}

// TestTwoFunctions: no two folders have functions with the same name.
func TestTwoFunctions(t *testing.T) {
	if _, err := kinds.Join(tables[1], tables[1]); err == nil {
		t.Error("two functions of one name were accepted")
	}
}
