package schema

import (
	"os"
	"testing"

	"github.com/portico-platform/portico/services/tree"
)

// BenchmarkDeployment prepares and validates a complete Deployment of about 70 fields, as
// for an update.
func BenchmarkDeployment(b *testing.B) {
	types, engine := newEngine(b)
	ty, _ := types.Lookup("apps", "v1", "deployments")
	content, err := os.ReadFile("../fieldmanager/testdata/bench/deployment.yaml")
	if err != nil {
		b.Fatal(err)
	}
	object := decode(b, string(content))
	if _, err := engine.Prepare(b.Context(), ty, object, Strict); err != nil {
		b.Fatal(err)
	}
	old, _ := tree.Copy(object).(map[string]any)
	b.Run("Prepare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := engine.Prepare(b.Context(), ty, object, Strict); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := engine.Validate(b.Context(), ty, object, old); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCompile compiles the schemas of a Deployment.
func BenchmarkCompile(b *testing.B) {
	types, engine := newEngine(b)
	ty, _ := types.Lookup("apps", "v1", "deployments")
	for b.Loop() {
		engine.compiled = map[string]*node{}
		engine.node(ty.Definition)
	}
}
