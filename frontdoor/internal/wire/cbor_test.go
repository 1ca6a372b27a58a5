package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/wire"
	ours "github.com/portico-platform/portico/frontdoor/internal/wire/cbor"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

func withCBOR() *wire.Codec {
	return wire.New(wire.Config{Vocabulary: vocabulary.Platform(), CBOR: true})
}

// TestCBOR writes objects, lists and events, which have what their JSON has.
func TestCBOR(t *testing.T) {
	const table = ";as=Table;g=meta.platform.io;v=v1"
	codec := withCBOR()
	for _, kind := range []*catalogue.Type{configMaps, widgets} {
		for _, as := range []string{"", table, ";as=PartialObjectMetadata;g=meta.platform.io;v=v1"} {
			encoder := func(media string, what wire.What) *wire.Encoder {
				t.Helper()
				form, err := codec.Negotiate(request(media+as, ""), kind, what)
				if err != nil {
					t.Fatal(err)
				}
				want := map[wire.What]string{wire.Object: "application/cbor", wire.Watch: "application/cbor-seq"}[what]
				if media == "application/cbor" && form.ContentType != want {
					t.Errorf("%s%s: content type %s", media, as, form.ContentType)
				}
				return codec.Encoder(form, kind)
			}
			var objects, events [2][]byte
			for i, media := range []string{"application/json", "application/cbor"} {
				w := httptest.NewRecorder()
				if err := encoder(media, wire.Object).Object(w, 200, configMap("a", 5)); err != nil {
					t.Fatal(err)
				}
				objects[i] = w.Body.Bytes()
				events[i] = watched(t, encoder(media, wire.Watch).Events())
			}
			same(t, "object"+as, objects[0], objects[1])
			frames := cbor.NewFramer().NewFrameReader(readCloser{bytes.NewReader(events[1])})
			for line := range bytes.Lines(events[0]) {
				frame := make([]byte, 64<<10)
				n, err := frames.Read(frame)
				if err != nil {
					t.Fatal(err)
				}
				same(t, "event"+as, line, frame[:n])
			}
		}
		for _, as := range []string{"", table, ";as=PartialObjectMetadataList;g=meta.platform.io;v=v1"} {
			for _, items := range []int{0, 1, 30} {
				var lists [2][]byte
				for i, media := range []string{"application/json", "application/cbor"} {
					form, err := codec.Negotiate(request(media+as, ""), kind, wire.List)
					if err != nil {
						t.Fatal(err)
					}
					lists[i] = list(t, codec.Encoder(form, kind), wire.ListMeta{Revision: 7, Continue: "more"}, items)
				}
				same(t, "list"+as, lists[0], lists[1])
			}
		}
	}
}

// same compares JSON with CBOR, which the decoder of Kubernetes reads.
func same(t *testing.T, what string, plain, encoded []byte) {
	t.Helper()
	if !strings.HasPrefix(what, "event") && !bytes.HasPrefix(encoded, []byte{0xd9, 0xd9, 0xf7}) { // frames are read without it
		t.Errorf("%s: not marked as CBOR", what)
	}
	var got map[string]any
	if err := direct.Unmarshal(encoded, &got); err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if want, err := tree.Decode(plain); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n got  %v\n want %v, %v", what, got, want, err)
	}
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// TestCBORIsOff: without the feature gate it is an unknown media type.
func TestCBORIsOff(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	if _, err := codec.Negotiate(request("application/cbor", ""), configMaps, wire.Object); !services.IsReason(err, services.ReasonNotAcceptable) || strings.Contains(err.Error(), "cbor") {
		t.Errorf("a response: %v", err)
	}
	if form, err := codec.Negotiate(request("application/cbor;q=1,application/json;q=0.9", ""), configMaps, wire.Object); err != nil || form.Media != wire.JSON {
		t.Errorf("a response with an alternative: %+v, %v", form, err)
	}
	if _, err := codec.Decode("application/cbor", []byte{0xa0}, configMaps, nil); !services.IsReason(err, services.ReasonUnsupportedMediaType) {
		t.Errorf("a body: %v", err)
	}
	if _, err := codec.Apply([]byte{0xa0}, nil); !services.IsReason(err, services.ReasonUnsupportedMediaType) {
		t.Errorf("an apply: %v", err)
	}
}

// TestDecodeCBOR reads bodies, with all that the original accepts, and nothing else.
func TestDecodeCBOR(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"strings of text and bytes": {"a26161616243636161 4178", `{"a":"b","caa":"x"}`},
		"marked":                    {"d9d9f7a1616101", `{"a":1}`},
		"no declared length":        {"bf61619f0102ffff", `{"a":[1,2]}`},
		"bytes for base64":          {"a16161d643010203", `{"a":"AQID"}`},
		"an unknown tag":            {"a16161d9ffff01", `{"a":1}`},
		"a float":                   {"a16161fb3ff8000000000000", `{"a":1.5}`},
		"negative":                  {"a1616120", `{"a":-1}`},
		"null":                      {"f6", `{}`},
		"a member twice":            {"a2616101616102", ""},
		"a member twice, as bytes":  {"a2616101416102", ""},
		"text that is no UTF-8":     {"a1616161ff", ""},
		"bytes that are no UTF-8":   {"a1616141ff", ""},
		"a name that is no UTF-8":   {"a141ff01", ""},
		"no number":                 {"a16161f97e00", ""},
		"infinite":                  {"a16161f97c00", ""},
		"undefined":                 {"a16161f7", ""},
		"a large number":            {"a161611bffffffffffffffff", ""},
		"a very large number":       {"a16161c249010000000000000000", ""},
		"a name that is a number":   {"a10101", ""},
		"more after the end":        {"a0a0", ""},
		"cut off":                   {"a16161", ""},
		"a string that is cut off":  {"7affffffff61", ""},
		"a list":                    {"80", ""},
		"nothing":                   {"", ""},
		"only an end":               {"ff", ""},
		"too deep":                  {"a16161" + strings.Repeat("81", 2000) + "80", ""},
		"too deep to read":          {"a16161" + strings.Repeat("81", 20000) + "80", ""},
		"too many values":           {"a161619a00200000" + strings.Repeat("a0", 2<<20), ""},
	} {
		body, err := hex.DecodeString(strings.ReplaceAll(c.body, " ", ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := ours.Decode(body, nil)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: %v", name, got)
			}
			if _, err := withCBOR().Decode("application/cbor", body, configMaps, nil); !services.IsReason(err, services.ReasonBadRequest) && !services.IsReason(err, services.ReasonRequestEntityTooLarge) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if encoded, _ := json.Marshal(got); err != nil || string(encoded) != c.want {
			t.Errorf("%s: %s, %v", name, encoded, err)
		}
	}
	options, err := direct.Marshal(map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := withCBOR().DeleteOptions("application/cbor", options, nil); err != nil || *got.PropagationPolicy != "Foreground" {
		t.Errorf("options of a deletion: %+v, %v", got, err)
	}
}

// FuzzCBOR: what is read is written again as it was.
func FuzzCBOR(f *testing.F) {
	for _, seed := range []string{"a26161616243636161 4178", "d9d9f7a1616101", "bf61619f0102ffff", "a16161d643010203", "a16161fb3ff8000000000000", "a1616183f4f5f6", "f6"} {
		body, err := hex.DecodeString(strings.ReplaceAll(seed, " ", ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		plain, err := ours.JSON(body, nil)
		if err != nil {
			return
		}
		encoded, err := ours.Append(nil, plain)
		if err != nil {
			t.Fatalf("%s: %v", plain, err)
		}
		if again, err := ours.JSON(encoded, nil); err != nil || !bytes.Equal(again, plain) {
			t.Errorf("%s becomes %s, %v", plain, again, err)
		}
	})
}
