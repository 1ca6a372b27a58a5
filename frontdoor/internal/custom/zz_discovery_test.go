package custom_test

import (
	"net/http/httptest"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/discovery"
	"github.com/portico-platform/portico/services/vocabulary"
)

func TestZZ(t *testing.T) {
	w := newWorld(t, vocabulary.K8s())
	w = w.add(t, w.widgets(t, `{type: object, oneOf: [{required: [spec]}, {required: [status]}], properties: {status: {type: object, x-preserve-unknown-fields: true}, spec: {type: object, nullable: true, properties: {p: {x-int-or-string: true, anyOf: [{type: integer},{type: string}]}, e: {type: object, x-embedded-resource: true, x-preserve-unknown-fields: true}, n: {type: string, not: {enum: [a]}}, m: {type: object, additionalProperties: {type: string}}}}}}`, "subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}"))
	d := discovery.New(discovery.Options{Catalogue: w.types, Vocabulary: w.vocabulary, Version: discovery.Release("")})
	for _, c := range [][2]string{{"/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"}, {"/openapi/v2", "application/json"}, {"/openapi/v3/apis/example.com/v1", "application/json"}, {"/openapi/v3/apis/example.com/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"}, {"/apis/example.com/v1", "application/json"}, {"/apis", "application/json"}} {
		r := httptest.NewRequest("GET", c[0], nil)
		r.Header.Set("Accept", c[1])
		out := httptest.NewRecorder()
		err := d.Serve(out, r)
		b := out.Body.String()
		if len(b) > 30000 { b = b[:200] }
		t.Log(c, err, out.Code, out.Body.Len())
		if c[1] == "application/json" && c[0] != "/openapi/v2" { t.Log(b) }
	}
}
