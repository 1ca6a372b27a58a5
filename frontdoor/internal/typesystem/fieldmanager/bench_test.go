package fieldmanager

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/portico-platform/portico/services/vocabulary"
)

// large returns a Deployment of about 70 fields, and the engine to write it with.
func large(b testing.TB) (*bench, map[string]any, PatchRequest) {
	b.Helper()
	content, err := os.ReadFile("testdata/bench/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	engine := newBench(b, vocabulary.Platform())
	object := decodeYAML(b, string(content))
	body, err := json.Marshal(object)
	if err != nil {
		b.Fatal(err)
	}
	r := PatchRequest{Type: engine.lookup(b, "apps/v1/deployments"), MediaType: MediaTypeApply, Body: body, Manager: "applier"}
	live, _, err := engine.Patch(b.Context(), r)
	if err != nil {
		b.Fatal(err)
	}
	r.Current = live
	return engine, live, r
}

func BenchmarkApplyUnchanged(b *testing.B) {
	engine, _, r := large(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := engine.Patch(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyChanged(b *testing.B) {
	engine, _, r := large(b)
	r.Body = bytes.Replace(r.Body, []byte(`"replicas":3`), []byte(`"replicas":4`), 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := engine.Patch(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApplyCreates(b *testing.B) {
	engine, _, r := large(b)
	r.Current = nil
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := engine.Patch(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrackUpdate(b *testing.B) {
	engine, live, r := large(b)
	next := copyOf(live)
	next["spec"].(map[string]any)["replicas"] = int64(4)
	b.ReportAllocs()
	for b.Loop() {
		setOwners(next, ownersOf(live))
		if err := engine.Track(Change{Type: r.Type, Live: live, New: next, Manager: "other"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTrackCreate(b *testing.B) {
	engine, live, r := large(b)
	next := copyOf(live)
	b.ReportAllocs()
	for b.Loop() {
		setOwners(next, nil)
		if err := engine.Track(Change{Type: r.Type, New: next, Manager: "other"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMergePatch(b *testing.B) {
	engine, _, r := large(b)
	r.MediaType, r.Body, r.Manager = MediaTypeMerge, []byte(`{"spec":{"replicas":4}}`), ""
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := engine.Patch(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStrategicPatch(b *testing.B) {
	engine, _, r := large(b)
	r.MediaType, r.Manager = MediaTypeStrategic, ""
	r.Body = []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"x:2"}]}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := engine.Patch(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}
