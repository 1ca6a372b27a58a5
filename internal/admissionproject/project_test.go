package admissionproject

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// call runs the command in a folder and returns its exit status and output.
func call(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	t.Chdir(dir)
	var out bytes.Buffer
	status := Main(args, &out, &out)
	return status, out.String()
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTheProjectWorks builds a new project outside of the workspace, and runs its tests and
// the service.
func TestTheProjectWorks(t *testing.T) {
	source, dir := root(t), t.TempDir()
	if status, out := call(t, dir, "new", "guard-pods", "--source="+source, "--module=example.com/team/guard"); status != 0 || !strings.Contains(out, "go mod tidy") || strings.Contains(out, "GOWORK") {
		t.Fatalf("exit status %d: %s", status, out)
	}
	project := filepath.Join(dir, "guard-pods")
	for _, args := range [][]string{{"mod", "tidy"}, {"vet", "./..."}, {"test", "./..."}, {"build", "-o", "guard-pods", "."}} {
		if out, err := tool(t.Context(), project, "go", args...); err != nil {
			t.Fatalf("go %q: %v\n%s", args, err, out)
		}
	}
	if out, err := tool(t.Context(), project, "gofmt", "-l", "."); err != nil || len(out) > 0 {
		t.Errorf("not formatted: %s%v", out, err)
	}
	if out, err := tool(t.Context(), project, "./guard-pods", "--help"); err != nil || !strings.Contains(string(out), "-client-ca-file") {
		t.Errorf("%s%v", out, err)
	}
}

func tool(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=mod -trimpath")
	return c.CombinedOutput()
}

func TestTheFolderOfTheProjectIsNew(t *testing.T) {
	source, dir := root(t), t.TempDir()
	mine := filepath.Join(dir, "mine")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mine", "empty"} {
		if status, out := call(t, dir, "new", name, "--source="+source); status != 1 || !strings.Contains(out, name+" already exists") {
			t.Errorf("exit status %d: %s", status, out)
		}
	}
	if content, err := os.ReadFile(mine); err != nil || string(content) != "mine" {
		t.Errorf("the file became %q, %v", content, err)
	}
	if status, out := call(t, dir, "new", "below", "--source="+source, "--dir=mine/below"); status != 1 || !strings.Contains(out, "--dir") {
		t.Errorf("exit status %d: %s", status, out)
	}
	if status, out := call(t, dir, "new", "other", "--source="+source, "--dir=a/b/c"); status != 0 {
		t.Errorf("exit status %d: %s", status, out)
	}
}

// TestTheSource: without flags, the SDK is that of the checkout around the current folder, and
// with a version there is no replacement.
func TestTheSource(t *testing.T) {
	checkout := t.TempDir()
	for _, path := range []string{"admission/sdk/go.mod", "go.work", "below/file"} {
		if err := os.MkdirAll(filepath.Join(checkout, filepath.Dir(path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(checkout, path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status, out := call(t, filepath.Join(checkout, "below"), "new", "a"); status != 0 || !strings.Contains(out, "GOWORK=off") {
		t.Fatalf("exit status %d: %s", status, out)
	}
	resolved, err := filepath.EvalSymlinks(checkout)
	if err != nil {
		t.Fatal(err)
	}
	if mod := read(t, "a/go.mod"); !strings.Contains(mod, "services => "+resolved+"/services\n") && !strings.Contains(mod, "services => "+checkout+"/services\n") {
		t.Errorf("%s", mod)
	}
	dir := t.TempDir()
	if status, out := call(t, dir, "new", "b", "--sdk-version=v1.2.3"); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	if mod := read(t, "b/go.mod"); strings.Contains(mod, "replace") || !strings.Contains(mod, "module example.com/b\n") || !strings.Contains(mod, "admission/sdk v1.2.3\n") {
		t.Errorf("%s", mod)
	}
	err = filepath.WalkDir("b", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(read(t, path), "{{") {
			t.Errorf("%s has an unfilled field", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWrongCalls(t *testing.T) {
	source, dir := root(t), t.TempDir()
	for want, args := range map[string][]string{
		"missing command":                  nil,
		`unknown command "old"`:            {"old"},
		"needs one NAME":                   {"new"},
		"new needs one NAME":               {"new", "a", "b"},
		`NAME "A"`:                         {"new", "A"},
		`NAME "../a"`:                      {"new", "../a"},
		`NAME "1a"`:                        {"new", "1a"},
		`NAME "` + strings.Repeat("a", 64): {"new", strings.Repeat("a", 64)},
		"unknown flag":                     {"new", "a", "--other"},
		"--module":                         {"new", "a", "--module=a b"},
		`--module: "a\n`:                   {"new", "a", "--module=a\nreplace x => y"},
		"cannot be used together":          {"new", "a", "--source=" + source, "--sdk-version=v1.2.3"},
		`--sdk-version: "1"`:               {"new", "a", "--sdk-version=1"},
		"is not a checkout of Portico":     {"new", "a", "--source=" + dir},
		"no checkout of Portico":           {"new", "a"},
	} {
		if status, out := call(t, dir, args...); status != 2 || !strings.Contains(out, want) {
			t.Errorf("%q: exit status %d: %s", args, status, out)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	for _, args := range [][]string{{"--help"}, {"new", "--help"}} {
		if status, out := call(t, dir, args...); status != 0 || !strings.Contains(out, "portico admission new NAME") {
			t.Errorf("%q: exit status %d: %s", args, status, out)
		}
	}
}
