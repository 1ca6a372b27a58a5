package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/frontdoor/internal/wire"
	"github.com/portico-platform/portico/frontdoor/internal/wire/protobuf"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzDeleteOptions decodes arbitrary bodies of DELETE requests: each results in options or
// a BadRequest.
func FuzzDeleteOptions(f *testing.F) {
	codec := newCodec(vocabulary.Platform())
	types := []string{"application/json", "application/yaml", media}
	f.Add(0, []byte(`{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":5}`))
	f.Fuzz(func(t *testing.T, which int, body []byte) {
		options, err := codec.DeleteOptions(types[uint(which)%3], body, nil)
		if err != nil {
			if s := services.AsStatus(err); s.Code != 400 {
				t.Errorf("%d: %v", s.Code, err)
			}
			return
		}
		if options.Kind != "" && options.Kind != "DeleteOptions" {
			t.Errorf("accepted a %s", options.Kind)
		}
		if _, err := json.Marshal(options); err != nil {
			t.Error(err)
		}
	})
}

// TestCompressedBodiesAreRefused sends gzip: it is not decompressed, so that a small body
// cannot become a large one.
func TestCompressedBodiesAreRefused(t *testing.T) {
	codec := newCodec(vocabulary.Platform())
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"", "application/json", "application/yaml", media} {
		if _, err := codec.Decode(contentType, packed.Bytes(), configMaps, nil); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%q: an object: %v", contentType, err)
		}
		if _, err := codec.DeleteOptions(contentType, packed.Bytes(), nil); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%q: options: %v", contentType, err)
		}
	}
}

// TestBodiesOfStandardClients: the Protobuf of Kubernetes is read in both vocabularies, since kubectl sends it to both.
func TestBodiesOfStandardClients(t *testing.T) {
	const kubernetes = "application/vnd.kubernetes.protobuf"
	message, err := (&corev1.ConfigMap{Data: map[string]string{"a": "b"}}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body := protobuf.AppendEnvelope(nil, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, message)
	for _, v := range []vocabulary.Vocabulary{vocabulary.Platform(), vocabulary.K8s()} {
		codec := newCodec(v)
		decoded, err := codec.Decode(kubernetes, body, configMaps, nil)
		if err != nil || !reflect.DeepEqual(decoded.Object["data"], map[string]any{"a": "b"}) {
			t.Errorf("%s: %v, %v", v.Name, decoded.Object, err)
		}
		if _, err := codec.Decode(kubernetes, body, widgets, nil); services.AsStatus(err).Code != 415 {
			t.Errorf("%s: a custom type: %v, want 415", v.Name, err)
		}
		w, r := httptest.NewRecorder(), request(kubernetes, "")
		codec.WriteStatus(w, r, services.BadRequest("no"))
		if got := w.Header().Get("Content-Type"); got != kubernetes || !bytes.HasPrefix(w.Body.Bytes(), []byte("k8s\x00")) {
			t.Errorf("%s: a Status is %q %q", v.Name, got, w.Body)
		}
	}
}

// TestBodiesAreCharged: bodies that are no text are charged before they are decoded, whatever they are
// for. The error is that of the charge.
func TestBodiesAreCharged(t *testing.T) {
	codec := withCBOR()
	many := append([]byte{0xa1, 0x61, 'a', 0x9f}, bytes.Repeat([]byte{0xa0}, 100_000)...) // empty maps
	many = append(many, 0xff)
	options := protobuf.AppendEnvelope(nil, schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}, bytes.Repeat([]byte{5<<3 | 2, 0}, 50_000))
	for what, decode := range map[string]func(wire.Charge) error{
		"an object": func(c wire.Charge) error { _, err := codec.Decode("application/cbor", many, configMaps, c); return err },
		"an apply":  func(c wire.Charge) error { _, err := codec.Apply(many, c); return err },
		"options":   func(c wire.Charge) error { _, err := codec.DeleteOptions("application/cbor", many, c); return err },
		"Protobuf options": func(c wire.Charge) error {
			_, err := codec.DeleteOptions(vocabulary.Platform().Protobuf, options, c)
			return err
		},
	} {
		charged := 0
		err := decode(func(n int) error {
			charged += n
			return &services.Status{Code: http.StatusTooManyRequests, Reason: services.ReasonTooManyRequests, Message: "too much"}
		})
		if !services.IsReason(err, services.ReasonTooManyRequests) || charged < 1<<20 {
			t.Errorf("%s: charged %d, %v", what, charged, err)
		}
	}
}
