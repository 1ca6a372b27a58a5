package wire_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/golden"
	"github.com/portico-platform/portico/services/vocabulary"
)

var now = time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC)

func newCodec(v vocabulary.Vocabulary) *wire.Codec {
	return wire.New(wire.Config{Vocabulary: v, Now: func() time.Time { return now }})
}

var (
	configMaps = &catalogue.Type{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", ListKind: "ConfigMapList", Namespaced: true,
		Columns: []kinds.Column{
			{Name: "Name", Type: "string", Format: "name", Cell: ".metadata.name"},
			{Name: "Data", Type: "integer", Cell: "showConfigMapData"},
			{Name: "Age", Type: "string", Cell: kinds.CellAge},
		}}
	widgets = &catalogue.Type{Group: "example.com", Version: "v1", Resource: "widgets", Kind: "Widget", Custom: true, ListKind: "WidgetList"}
)

func configMap(name string, revision int64) services.Object {
	return services.Object{UID: "uid-" + name, Revision: revision, JSON: fmt.Appendf(nil,
		`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"%d","name":%q,"namespace":"default","uid":"uid-%s",`+
			`"creationTimestamp":"2026-01-05T23:58:00Z","labels":{"app":"x"}},"data":{"k":"line one\n  line two\n","n":"1"}}`, revision, name, name)}
}

func request(accept, query string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	return r
}

// TestGolden writes an object, a list, an empty list and a watch in each form.
func TestGolden(t *testing.T) {
	const platform = ";g=meta.platform.io;v="
	for _, c := range []struct{ name, media, query string }{
		{"json", "application/json", ""},
		{"pretty", "application/json", "pretty=true"},
		{"yaml", "application/yaml", ""},
		{"table", "application/json;as=Table" + platform + "v1", ""},
		{"table-none", "application/json;as=Table" + platform + "v1beta1", "includeObject=None"},
		{"table-object", "application/json;as=Table" + platform + "v1", "includeObject=Object&pretty=1"},
		{"table-yaml", "application/yaml;as=Table" + platform + "v1", ""},
		{"partial", "application/json;as=PartialObjectMetadata%s" + platform + "v1", ""},
	} {
		accept := func(list string) string { return strings.Replace(c.media, "%s", list, 1) }
		codec := newCodec(vocabulary.Platform())
		t.Run(c.name, func(t *testing.T) {
			form, err := codec.Negotiate(request(accept(""), c.query), configMaps, wire.Object)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if err := codec.Encoder(form, configMaps).Object(w, 200, configMap("a", 7)); err != nil {
				t.Fatal(err)
			}
			golden.File(t, c.name+".object", w.Body.Bytes())

			if form, err = codec.Negotiate(request(accept("List"), c.query), configMaps, wire.List); err != nil {
				t.Fatal(err)
			}
			remaining := int64(5)
			golden.File(t, c.name+".list", list(t, codec.Encoder(form, configMaps), wire.ListMeta{Revision: 9, Continue: "token", Remaining: &remaining}, 2))
			golden.File(t, c.name+".empty", list(t, codec.Encoder(form, configMaps), wire.ListMeta{Revision: 9}, 0))

			if strings.Contains(c.name, "yaml") {
				return
			}
			if form, err = codec.Negotiate(request(accept(""), c.query), configMaps, wire.Watch); err != nil {
				t.Fatal(err)
			}
			golden.File(t, c.name+".watch", watched(t, codec.Encoder(form, configMaps).Events()))
		})
	}
}

func list(t *testing.T, e *wire.Encoder, meta wire.ListMeta, items int) []byte {
	t.Helper()
	w := httptest.NewRecorder()
	l := e.List(w)
	if err := l.Begin(meta); err != nil {
		t.Fatal(err)
	}
	for i := range items {
		if err := l.Item(configMap(itemName(i), int64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.End(); err != nil {
		t.Fatal(err)
	}
	return w.Body.Bytes()
}

// TestCustomListsContinue: whole lists of custom objects always have continue in the original vocabulary, too.
func TestCustomListsContinue(t *testing.T) {
	const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	codec := newCodec(vocabulary.K8s())
	for _, c := range []struct {
		accept string
		t      *catalogue.Type
		want   string
	}{
		{"", widgets, `"metadata":{"resourceVersion":"9","continue":""}`}, {"", configMaps, `"metadata":{"resourceVersion":"9"}`}, {partial, widgets, `"metadata":{"resourceVersion":"9"}`},
	} {
		form, err := codec.Negotiate(request(c.accept, ""), c.t, wire.List)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(list(t, codec.Encoder(form, c.t), wire.ListMeta{Revision: 9}, 0)); !strings.Contains(got, c.want) {
			t.Errorf("%q %s: %s", c.accept, c.t.Kind, got)
		}
	}
}

func itemName(i int) string { return fmt.Sprintf("c%d", i) }

func watched(t *testing.T, v *wire.EventEncoder) []byte {
	t.Helper()
	out, err := v.Event(nil, services.Added.String(), configMap("a", 7))
	if err == nil {
		out, err = v.Event(out, services.Deleted.String(), configMap("a", 8))
	}
	if err == nil {
		out, err = v.Bookmark(out, 9, nil)
	}
	if err == nil {
		out, err = v.Bookmark(out, 10, map[string]string{"end": "true"})
	}
	if err == nil {
		out, err = v.Error(out, services.Expired("too old"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTextIsValid parses the golden files.
func TestTextIsValid(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.*")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(file, "yaml") {
			if _, err := wire.DecodeText(wire.YAML, text); err != nil {
				t.Error(file, err)
			}
			continue
		}
		for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
			var v map[string]any
			if err := d.Decode(&v); err != nil {
				t.Error(file, err)
				break
			}
		}
	}
}

// TestContinueIsVocabulary: with the original vocabulary an empty token is omitted.
func TestContinueIsVocabulary(t *testing.T) {
	got := string(list(t, newCodec(vocabulary.K8s()).Encoder(wire.Form{}, configMaps), wire.ListMeta{Revision: 9}, 0))
	if want := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCachedForms encodes one revision repeatedly: the third time from the cache, even if
// the JSON is not available.
func TestCachedForms(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	e := codec.Encoder(wire.Form{Media: wire.Protobuf}, configMaps)
	first, err := e.AppendObject(nil, configMap("a", 7))
	if err == nil {
		_, err = e.AppendObject(nil, configMap("a", 7))
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := e.AppendObject(nil, services.Object{UID: "uid-a", Revision: 7})
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the kept form differs: %v", err)
	}
	changed := configMap("b", 7)
	changed.UID = "uid-a"
	changed.Revision = 8
	if other, err := e.AppendObject(nil, changed); err != nil || bytes.Equal(first, other) {
		t.Errorf("another revision is served from the kept form: %v", err)
	}
	dry := configMap("c", 7)
	dry.UID, dry.Revision = "", 0
	if other, err := e.AppendObject(nil, dry); err != nil || !bytes.Contains(other, []byte("uid-c")) {
		t.Errorf("an object without identity is served from a kept form: %v", err)
	}
}
