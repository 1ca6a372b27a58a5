package e2e

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/portico-platform/portico/internal/markdown"
)

// runPages runs the command blocks of the documentation: those of a page together, as in one
// terminal, in a folder where the data and the programs are as after make run. tools/lint makes sure
// that each block is marked.
func runPages(t *testing.T, a *allInOne) {
	program, err := filepath.Abs(portico(t))
	if err != nil {
		t.Fatal(err)
	}
	all, err := markdown.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		script := ""
		for _, b := range all[name].Blocks {
			if b.Language == "sh" && b.Info == "" {
				script += b.Text
			}
		}
		if script != "" {
			ran++
			t.Run(name, func(t *testing.T) { runScript(t, a, program, script) })
		}
	}
	if ran < 5 {
		t.Errorf("only %d pages have commands that are run", ran)
	}
}

// failing is a command that has to fail, which its comment says.
var failing = regexp.MustCompile(`(?m)^(\S.*?) +# fails.*$`)

func runScript(t *testing.T, a *allInOne, program, script string) {
	dir := t.TempDir()
	kubectl, err := filepath.Abs(root + "/bin/kubectl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"portico-data": a.Dir, "bin/portico": program, "bin/kubectl": kubectl} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script = failing.ReplaceAllString(script, "if $1; then\necho \"this did not fail: $1\"\nexit 1\nfi")
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+strings.ReplaceAll(script, "127.0.0.1:6443", a.address)+"true\n")
	command.Dir = dir
	command.WaitDelay = patience
	command.Env = append(os.Environ(), "HOME="+dir, "KUBECONFIG="+filepath.Join(a.Dir, "kubeconfig"), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
