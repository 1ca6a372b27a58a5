package fieldmanager

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

// FuzzPatch sends arbitrary bodies as every type of patch. The current object must not be
// modified, and the result must be an object that can be encoded, or a client error.
func FuzzPatch(f *testing.F) {
	b := newBench(f, vocabulary.Platform())
	ty := b.lookup(f, "/v1/services")
	live, _, err := b.Patch(f.Context(), PatchRequest{Type: ty, MediaType: MediaTypeApply, Manager: "one",
		Body: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80,"name":"x"}],"selector":{"a":"b"}}}`)})
	if err != nil {
		f.Fatal(err)
	}
	raw, err := tree.Encode(live)
	if err != nil {
		f.Fatal(err)
	}
	for range 3 { // then its fieldsV1 is shared
		if live, err = tree.Decode(raw); err != nil {
			f.Fatal(err)
		}
	}
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"metadata":null}`, `{"spec":{"ports":[{"port":80,"$patch":"delete"}]}}`,
		`{"spec":{"$retainKeys":["type"],"$setElementOrder/ports":[{"port":80}]}}`, `[{"op":"add","path":"/spec/ports/-","value":{}}]`,
		`[{"op":"move","from":"/spec","path":"/spec/x"}]`, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`,
		"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1.5}]}", `{"apiVersion":"v1","kind":"Service","metadata":{"managedFields":[{}]}}`,
	} {
		for kind := range 4 {
			f.Add(seed, uint8(kind))
		}
	}
	kinds := []string{MediaTypeJSON, MediaTypeMerge, MediaTypeStrategic, MediaTypeApply}
	f.Fuzz(func(t *testing.T, body string, kind uint8) {
		before := copyOf(live)
		r := PatchRequest{Type: ty, MediaType: kinds[int(kind)%len(kinds)], Body: []byte(body), Current: live}
		if r.MediaType == MediaTypeApply {
			r.Manager = "two"
		}
		patched, _, err := b.Patch(t.Context(), r)
		if !tree.Equal(before, live) {
			t.Fatal("the current object was modified")
		}
		if err != nil {
			var s *services.Status
			if !errors.As(err, &s) || s.Code >= 500 {
				t.Fatalf("not the client's error: %v", err)
			}
			return
		}
		if _, err := json.Marshal(patched); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzManagedFields writes arbitrary managedFields.
func FuzzManagedFields(f *testing.F) {
	b := newBench(f, vocabulary.Platform())
	ty := b.lookup(f, "/v1/configmaps")
	live := decodeYAML(f, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: u}, data: {k: v}}")
	f.Add(`[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{},".":{}}}}]`)
	f.Add(`[{"manager":"m","operation":"Apply","apiVersion":"v9","fieldsType":"FieldsV1","fieldsV1":{"k:{\"a\":1}":{},"v:1":{},"i:0":{}}}]`)
	f.Add(`[{}]`)
	f.Fuzz(func(t *testing.T, list string) {
		next := copyOf(live)
		var owners []any
		if json.Unmarshal([]byte(list), &owners) != nil {
			return
		}
		next["metadata"].(map[string]any)["managedFields"] = owners
		next["data"].(map[string]any)["l"] = "w"
		if err := b.Track(Change{Type: ty, Live: live, New: next, Manager: "m"}); err != nil {
			t.Skip(err)
		}
		if _, err := decodeOwners(ownersOf(next)); err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
	})
}
