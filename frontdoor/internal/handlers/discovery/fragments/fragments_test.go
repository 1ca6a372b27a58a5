package fragments

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
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
		b := openapi.Builder{Catalogue: types.With(surface), Vocabulary: v, Release: r, Version: "v" + r.Patch(), CBOR: true}
		all := slices.Collect(maps.Values(b.Parts()))
		w := Whole{Head: b.V2()}
		for _, custom := range []bool{false, true} {
			own := slices.DeleteFunc(slices.Clone(all), func(p openapi.Part) bool { some, _ := p.Custom(); return some != custom })
			f, err := New(b.V2(own...), custom)
			if err != nil {
				t.Fatal(err)
			}
			w.Fragments = append(w.Fragments, f)
		}
		want, err := json.Marshal(b.V2(all...))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, v.Name+" "+r.String()+" JSON", w.JSON, want)
		message, err := openapi_v2.ParseDocument(want)
		if err != nil {
			t.Fatal(err)
		}
		if want, err = proto.Marshal(message); err != nil {
			t.Fatal(err)
		}
		equal(t, v.Name+" "+r.String()+" Protobuf", w.Protobuf, want)
	}
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
