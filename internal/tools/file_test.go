package tools

import (
	"os"
	"path/filepath"
	"testing"
)

// file returns the path of a file with a content.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHandles: as a plugin of kubectl every argument is for the tools.
func TestHandles(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"/usr/bin/kubectl-portico"}, true},
		{[]string{"/usr/bin/kubectl-portico", "nothing"}, true},
		{[]string{"portico", "who-can", "get"}, true},
		{[]string{"portico", "__complete", ""}, true},
		{[]string{"portico"}, false},
		{[]string{"portico", "--data-dir=who-can"}, false},
		{[]string{"portico", "pki"}, false},
	} {
		if got := Handles(c.args); got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}
