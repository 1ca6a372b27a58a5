package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestGenerated generates the data of each release again and compares it with the
// repository's.
func TestGenerated(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d releases, %v", len(files), err)
	}
	repository := "../../frontdoor/internal/typesystem"
	for _, file := range files {
		folder := t.TempDir()
		for _, sub := range []string{"catalogue/published/releases", "features"} {
			if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := generate(file, folder); err != nil {
			t.Fatal(err)
		}
		release := file[:len(file)-len(".yaml")]
		for _, name := range []string{"catalogue/published/releases/" + release + ".pb.gz", "features/" + release + ".json"} {
			want, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(repository, name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs from what is generated (advice: run make gen): %v", name, err)
			}
		}
	}
}
