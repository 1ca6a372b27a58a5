package kinds

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/datafiles"
)

// TestReadme: the README explains all keys, and no others.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(readme)) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, key := range regexp.MustCompile("`([a-zA-Z]+)`").FindAllStringSubmatch(cells[1], -1) {
				documented[key[1]] = true
			}
		}
	}
	known := map[string]bool{}
	for _, of := range []any{Kind{}, Behavior{}, Rules{}, Field{}} {
		keys(reflect.TypeOf(of), known)
	}
	for key := range known {
		if !documented[key] && key != "definitions" && key != "sort" {
			t.Errorf("README.md does not explain %s", key)
		}
	}
	for key := range documented {
		if !known[key] {
			t.Errorf("README.md explains %s, which is no key", key)
		}
	}
	nested := map[string]bool{}
	for _, of := range []any{Selectable{}, Column{}, Deprecation{}, Choice{}, conditional{}} {
		keys(reflect.TypeOf(of), nested)
	}
	for key := range nested {
		if !strings.Contains(string(readme), "`"+key+"`") {
			t.Errorf("README.md does not mention %s", key)
		}
	}
}

func keys(of reflect.Type, into map[string]bool) {
	for i := range of.NumField() {
		if name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			into[name] = true
		}
	}
}

// TestPacked: the packed files are those of the folder.
func TestPacked(t *testing.T) {
	if want, err := datafiles.Pack(os.DirFS("."), "groups.yaml", "*/*.yaml"); err != nil || string(want) != packed {
		t.Errorf("packed.txt is out of date (advice: run make gen): %v", err)
	}
}

// TestSet: mistakes in files are errors.
func TestSet(t *testing.T) {
	set, err := Read()
	if err != nil || len(set.Kinds) < 50 || len(set.Groups) < 20 {
		t.Fatalf("%d kinds, %d groups: %v", len(set.Kinds), len(set.Groups), err)
	}
	for want, k := range map[string]*Kind{
		"twice":           set.Kinds[0],
		"generation":      {Resource: "things", Behavior: Behavior{Generation: "often"}},
		"format":          {Resource: "things", Definitions: map[string]*Rules{"a.v1.A": {Fields: map[string]*Field{"a": {Format: "nothing such"}}}}},
		"missing closing": {Resource: "things", Definitions: map[string]*Rules{"a.v1.A": {Fields: map[string]*Field{"a": {Pattern: "("}}}}},
	} {
		fresh := &Set{Kinds: set.Kinds[:1], Definitions: map[string]*Rules{}}
		if err := fresh.add(k); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (&Kind{Group: "apps", Resource: "things"}).checkPath("core/things.yaml"); err == nil || !strings.Contains(err.Error(), "apps/things.yaml") {
		t.Errorf("a file in the wrong folder: %v", err)
	}
}
