package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// operator is the module of the sample operator, and suiteFolder where its suite runs.
var (
	operator    = filepath.Join("deploy", "testing", "cronjob")
	suiteFolder = filepath.Join(operator, "internal", "controller")
)

// suites are the programs of the suite: unchanged, and with portico.Environment.
type suites struct{ unchanged, inProcess string }

// buildSuites builds both. In the second, the type of the environment is another, and nothing
// else. It needs a module that has the operator and the suite of Portico: a workspace.
func buildSuites(ctx context.Context, work string) (suites, error) {
	s := suites{filepath.Join(work, "unchanged.test"), filepath.Join(work, "in-process.test")}
	if err := build(ctx, "off", "-o", s.unchanged); err != nil {
		return s, err
	}
	workspace, overlay := filepath.Join(work, "go.work"), filepath.Join(work, "overlay.json")
	if err := errors.Join(writeWorkspace(workspace), writeOverlay(work, overlay)); err != nil {
		return s, err
	}
	return s, build(ctx, workspace, "-overlay", overlay, "-o", s.inProcess)
}

func build(ctx context.Context, workspace string, args ...string) error {
	c := exec.CommandContext(ctx, "go", append(append([]string{"test", "-c", "-ldflags=-s -w"}, args...), "./internal/controller")...)
	c.Dir, c.Env = operator, append(os.Environ(), "GOWORK="+workspace)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("building the suite of the operator: %w\n%s", err, out)
	}
	return nil
}

// writeWorkspace writes the workspace of the project with the operator among its modules.
func writeWorkspace(path string) error {
	content, err := os.ReadFile("go.work")
	if err != nil {
		return fmt.Errorf("%w (run it in the root of the project)", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	sums, err := os.ReadFile("go.work.sum")
	if err != nil {
		return err
	}
	text := regexp.MustCompile(`(?m)^\t\./`).ReplaceAllLiteralString(string(content), "\t"+root+"/")
	text += "\nuse " + filepath.Join(root, operator) + "\n"
	return errors.Join(os.WriteFile(path, []byte(text), 0o600), os.WriteFile(path+".sum", sums, 0o600))
}

// writeOverlay writes a copy of the suite's set-up, and an overlay that puts it in the place of
// the original.
func writeOverlay(work, path string) error {
	original, err := filepath.Abs(filepath.Join(suiteFolder, "suite_test.go"))
	if err != nil {
		return err
	}
	content, err := os.ReadFile(original)
	if err != nil {
		return err
	}
	imported := regexp.MustCompile(`"[^"]*/envtest"`)
	changed := imported.ReplaceAllString(strings.ReplaceAll(string(content), "envtest.Environment", "portico.Environment"), `portico "github.com/portico-platform/portico/testing"`)
	if changed == string(content) {
		return fmt.Errorf("%s has no environment", original)
	}
	replacement := filepath.Join(work, "suite_test.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: replacement}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(replacement, []byte(changed), 0o600), os.WriteFile(path, overlay, 0o600))
}
