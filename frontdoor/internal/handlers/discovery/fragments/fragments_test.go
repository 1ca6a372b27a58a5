package fragments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// TestWholeIsTheDocument: a document of fragments has the same bytes as one that is encoded at once, in both encodings.
func TestWholeIsTheDocument(t *testing.T) {
	for r, v := range map[release.Release]vocabulary.Vocabulary{release.V121: vocabulary.Platform(), release.V136: vocabulary.K8s()} {
		types, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r})
		if err != nil {
			t.Fatal(err)
		}
		surface, err := crd.Specimen(v, types)
		if err != nil {
			t.Fatal(err)
		}
		var named []catalogue.Surface
		for _, n := range odd {
			d, err := crd.Compile(n.definition(), crd.Setting{Vocabulary: v, Types: types})
			if err != nil {
				t.Fatal(err)
			}
			named = append(named, d.Surface)
		}
		b := openapi.Builder{Catalogue: types.With(append(named, surface)...), Vocabulary: v, Release: r, Version: "v" + r.Patch(), CBOR: true}
		for _, n := range odd {
			if _, ok := b.Catalogue.Body(n.group, "v1-a", n.kind); !ok {
				t.Fatalf("%v is not served", n)
			}
		}
		all := slices.Collect(maps.Values(b.Parts()))
		builtIn := slices.DeleteFunc(slices.Clone(all), func(p openapi.Part) bool { some, _ := p.Custom(); return some })
		base, err := New(b.V2(builtIn...), false)
		if err != nil {
			t.Fatal(err)
		}
		elsewhere := map[string]bool{}
		for name := range b.V2(builtIn...).Definitions {
			elsewhere[name] = true
		}
		want := encodedAtOnce(t, b.V2(all...))
		for _, how := range []string{"templates", "whole"} {
			w := Whole{Head: b.V2(), Fragments: []*Fragment{base}}
			for _, p := range all {
				if some, only := p.Custom(); some {
					w.Fragments = append(w.Fragments, fragment(t, b, p, elsewhere, only && how == "templates"))
				}
			}
			name := fmt.Sprintf("%s %s of %s", v.Name, r, how)
			equal(t, name+" in JSON", w.JSON, want[JSON])
			equal(t, name+" in Protobuf", w.Protobuf, want[Protobuf])
		}
	}
}

// oddNames are names that documents write in several ways.
type oddNames struct{ group, plural, kind, list string }

// The last two have a name that YAML does not read as a text.
var odd = []oddNames{
	{"my-group.k8s.io", "a-things", "a-Thing", "Things-of-a"}, {"zoo.example.com", "nagas", "Naga", "NagaList"},
	{"no.example.com", "noes", "No", "NoList"}, {"1.5", "numbers", "Number", "NumberList"},
}

// definition returns a definition with these names.
func (n oddNames) definition() map[string]any {
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": "<a> & b", "properties": map[string]any{"a": map[string]any{"type": "string"}}}}
	var versions []any
	for _, name := range []string{"v1", "v1-a"} {
		versions = append(versions, map[string]any{"name": name, "served": true, "storage": name == "v1", "schema": schema})
	}
	names := map[string]any{"plural": n.plural, "singular": n.plural, "kind": n.kind, "listKind": n.list}
	return map[string]any{"apiVersion": "apiextensions/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": n.plural + "." + n.group, "uid": n.kind},
		"spec":   map[string]any{"group": n.group, "scope": "Namespaced", "versions": versions, "names": names},
		"status": map[string]any{"acceptedNames": names, "conditions": []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}}}}
}

// fragment returns the fragment of a part, of templates or not.
func fragment(t *testing.T, b openapi.Builder, p openapi.Part, elsewhere map[string]bool, templates bool) *Fragment {
	t.Helper()
	_, only := p.Custom()
	if !templates {
		f, err := New(b.V2Without(elsewhere, p.OfCustom()), only)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	alike, names, ok := b.Alike(p)
	if !ok {
		t.Fatal("a part with custom types has no templates")
	}
	if slices.ContainsFunc(names, func(of []string) bool { return !Plain(of) }) {
		return fragment(t, b, p, elsewhere, false)
	}
	var filled []Filled
	for i, like := range alike {
		made, err := NewTemplate(b.V2Like(like, elsewhere), b.StandIns())
		if err != nil {
			t.Fatal(err)
		}
		filled = append(filled, Filled{made, names[i]})
	}
	var f *Fragment
	for _, in := range []Form{JSON, Protobuf} {
		one, err := Fill(in, b.V2Definitions(p, elsewhere), filled...)
		if err != nil {
			t.Fatal(err)
		}
		if !one.Has(in) || one.Has(1-in) {
			t.Fatalf("a fragment of form %d has JSON %t, Protobuf %t", in, one.Has(JSON), one.Has(Protobuf))
		}
		f = one.With(f)
	}
	return f
}

// encodedAtOnce returns a document in each form as the libraries encode it.
func encodedAtOnce(t *testing.T, of *spec.Swagger) (in [2][]byte) {
	t.Helper()
	var err error
	if in[JSON], err = json.Marshal(of); err != nil {
		t.Fatal(err)
	}
	message, err := openapi_v2.ParseDocument(in[JSON])
	if err != nil {
		t.Fatal(err)
	}
	if in[Protobuf], err = proto.Marshal(message); err != nil {
		t.Fatal(err)
	}
	return in
}

// equal reports where what is written differs.
func equal(t *testing.T, name string, write func(io.Writer) error, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		at := 0
		for at < min(got.Len(), len(want)) && got.Bytes()[at] == want[at] {
			at++
		}
		part := func(all []byte) string { return string(all[max(0, min(at-80, len(all))):min(at+80, len(all))]) }
		t.Errorf("%s differs at %d of %d, want %d: %q, want %q", name, at, got.Len(), len(want), part(got.Bytes()), part(want))
	}
}

// TestOrder: members of several fragments are in the order of their names, and where names are the same, the first counts.
func TestOrder(t *testing.T) {
	fragment := func(paths string, definitions ...string) *Fragment {
		document := &spec.Swagger{SwaggerProps: spec.SwaggerProps{Paths: &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: spec.Definitions{}}}
		for path := range strings.FieldsSeq(paths) {
			document.Paths.Paths[path] = spec.PathItem{}
		}
		for i, name := range definitions {
			document.Definitions[name] = *spec.StringProperty().WithDescription(strings.Repeat("d", len(definitions)+i))
		}
		f, err := New(document, true)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	head := &spec.Swagger{SwaggerProps: spec.SwaggerProps{Swagger: "2.0", Info: &spec.Info{InfoProps: spec.InfoProps{Title: "t", Version: "1"}}}}
	w := Whole{Head: head, Fragments: []*Fragment{fragment("/c/1 /c/2", "m"), fragment("/a/1 /a/2", "z", "a", "m"), fragment("/b")}}
	var got bytes.Buffer
	if err := w.JSON(&got); err != nil {
		t.Fatal(err)
	}
	want := `{"swagger":"2.0","info":{"title":"t","version":"1"},"paths":{"/a/1":{},"/a/2":{},"/b":{},"/c/1":{},"/c/2":{}},` +
		`"definitions":{"a":{"description":"dddd","type":"string"},"m":{"description":"d","type":"string"},"z":{"description":"ddd","type":"string"}}}`
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got.String(), want)
	}
}

// TestPlain: names that an encoding writes in another way than they are do not fit into templates.
func TestPlain(t *testing.T) {
	for range 5_000 { // short ones of the letters of words
		name := make([]byte, 1+rand.IntN(5))
		for i := range name {
			name[i] = "truefalsynoTRUEFALSYNO1.-_x"[rand.IntN(27)]
		}
		if text, err := yaml.Marshal(string(name)); err != nil || Plain([]string{string(name)}) && string(text) != string(name)+"\n" {
			t.Fatalf("%s is plain, and %s in YAML (%v)", name, text, err)
		}
	}
	for name, want := range map[string]bool{"things": true, "Thing": true, "v1-a": true, "a.example.com": true, "x": true,
		"": false, "No": false, "null": false, "1.5": false, "1e3": false, "a b": false, "a<b": false, "ä": false, "~": false, "2001-01-01": false} {
		if got := Plain([]string{"plain", name}); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
