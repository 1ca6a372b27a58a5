package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryServiceIsAContainer checks that each program of the workspace has an image, a
// container and an identity.
func TestEveryServiceIsAContainer(t *testing.T) {
	programs, err := filepath.Glob("../../*/cmd/*/main.go")
	if err != nil || len(programs) < 9 {
		t.Fatalf("%d programs: %v", len(programs), err)
	}
	for _, program := range programs {
		name := filepath.Base(filepath.Dir(program))
		for file, want := range map[string]string{
			"compose.yaml":                    "\n  " + name + ":\n    <<: [*container,",
			"../images/build":                 " " + name + " ",
			"../internal/pki/plan.go":         `newFolder("` + name + `",`,
			"../../docs/operations/images.md": "| " + name + " |",
		} {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.ReplaceAll(string(content), "(frontdoor ", " frontdoor "), want) {
				t.Errorf("%s does not name %s", file, name)
			}
		}
	}
}
