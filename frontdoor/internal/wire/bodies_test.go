package wire_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"testing"

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
		options, err := codec.DeleteOptions(types[uint(which)%3], body)
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
		if _, err := codec.Decode(contentType, packed.Bytes(), configMaps); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%q: an object: %v", contentType, err)
		}
		if _, err := codec.DeleteOptions(contentType, packed.Bytes()); !services.IsReason(err, services.ReasonBadRequest) {
			t.Errorf("%q: options: %v", contentType, err)
		}
	}
}
