// Package images tests that the binaries of images are reproducible.
package images

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/internal/servers"
)

var (
	// programs are those that TestReproducible builds. All are built in the same way.
	programs = flag.String("programs", "probe", "the programs to build twice, with commas between them")
	// emptyCache costs a minute of compiling: the gate leaves it to make reproducible.
	emptyCache = flag.Bool("empty-cache", false, "build the second time with an empty build cache")
)

// TestReproducible builds programs twice, the second time from a copy of the source in
// another folder: the binaries are identical, static and contain no build paths. By
// default it builds the smallest program. A path that reached the compiler would miss the
// build cache and change the binary; make reproducible compiles everything a second time.
func TestReproducible(t *testing.T) {
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	copySource(t, here, elsewhere)
	var env []string
	if *emptyCache {
		env = append(env, "GOCACHE="+t.TempDir())
	}
	for name := range strings.SplitSeq(*programs, ",") {
		t.Run(name, func(t *testing.T) { reproduce(t, name, here, elsewhere, env) })
	}
}

// TestUnusedMethodsAreLeftOut: nothing in these programs finds methods by name at run time, so that the linker leaves out
// those that are not called, which is a fifth of a program.
func TestUnusedMethodsAreLeftOut(t *testing.T) {
	for _, name := range []string{"store", "authz", "admission", "lifecycle"} {
		command := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w -dumpdep", "-o", os.DevNull, "./"+name+"/cmd/"+name)
		command.Dir, command.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out[max(0, len(out)-1000):])
		}
		if !bytes.Contains(out, []byte("main.main")) {
			t.Errorf("%s: the linker has printed no references", name)
		}
		for line := range bytes.Lines(out) {
			if bytes.Contains(line, []byte("<ReflectMethod>")) {
				t.Errorf("%s: %s", name, bytes.TrimSpace(line))
			}
		}
	}
}

func reproduce(t *testing.T, name, here, elsewhere string, env []string) {
	first, second := built(t, here, name), built(t, elsewhere, name, env...)
	if sha256.Sum256(first) != sha256.Sum256(second) {
		t.Error("the same source has given two binaries")
	}
	if !bytes.Equal(bill(t, here, name), bill(t, elsewhere, name)) {
		t.Error("the same source has given two bills of materials")
	}
	for _, path := range []string{here, elsewhere} {
		if bytes.Contains(first, []byte(path)) || bytes.Contains(second, []byte(path)) {
			t.Errorf("a binary says that it was made in %s", path)
		}
	}
	program, err := elf.NewFile(bytes.NewReader(first))
	if err != nil {
		t.Skip("no ELF here:", err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			t.Error("the binary needs a dynamic linker")
		}
	}
}

// copySource copies the files of the project.
func copySource(t *testing.T, from, to string) {
	t.Helper()
	list, err := exec.Command("git", "-C", from, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		t.Skip("not a checkout:", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		info, err := os.Stat(filepath.Join(from, name))
		if err != nil || info.IsDir() {
			continue // deleted, and not committed yet
		}
		content, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// built builds the binary of an image and returns it.
func built(t *testing.T, dir, name string, env ...string) []byte {
	t.Helper()
	command := exec.Command(filepath.Join(dir, "deploy/images/build"), name)
	command.Env = append(append(os.Environ(), "BINARIES_ONLY=1", "VERSION=v0.0.0", "REVISION=0123", "DATE=2026-11-28T00:00:00Z"), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "bin/images", name, "root/program"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// bill returns the bill of materials of an image.
func bill(t *testing.T, dir, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "bin/images", name, "root/sbom.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// component is one part of a bill.
type component struct {
	Name, Version, PURL string
	Hashes              []struct{ Alg, Content string }
}

// TestBillOfMaterials compares the bill of an image with what the program in it says of itself.
func TestBillOfMaterials(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program := built(t, root, "store")
	var bom struct {
		BOMFormat   string
		SpecVersion string
		Metadata    struct{ Component component }
		Components  []component
	}
	if err := json.Unmarshal(bill(t, root, "store"), &bom); err != nil || bom.BOMFormat != "CycloneDX" || bom.SpecVersion == "" {
		t.Fatalf("%+v, %v", bom, err)
	}
	sum := sha256.Sum256(program)
	if about := bom.Metadata.Component; about.Name != "portico-store" || about.Version != "v0.0.0" || about.Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill is of %+v", about)
	}
	listed := map[string]string{}
	for _, c := range bom.Components {
		listed[c.Name] = c.Version
		if c.Version == "" || !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") {
			t.Errorf("%s: version %q, %s", c.Name, c.Version, c.PURL)
		}
		if ours := strings.HasPrefix(c.Name, "github.com/portico-platform/") || c.Name == "std"; ours == (c.Hashes != nil) {
			t.Errorf("%s: has a checksum: %v", c.Name, c.Hashes != nil)
		}
	}
	out, err := exec.Command("go", "version", "-m", filepath.Join(root, "bin/images/store/root/program")).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := 1 // the standard library
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "mod" && fields[0] != "dep" {
			continue
		}
		found++
		if version := listed[fields[1]]; version != fields[2] && !strings.HasPrefix(fields[1], "github.com/portico-platform/") {
			t.Errorf("%s is in the program with %s and in the bill with %q", fields[1], fields[2], version)
		}
	}
	if found < 20 || len(listed) != found {
		t.Errorf("%d modules in the program, and %d in the bill", found, len(listed))
	}
	if !strings.Contains(string(out), "go"+listed["std"]) {
		t.Errorf("the standard library is of %q", listed["std"])
	}
}

// TestRuntimeSettings: images, the chart and separate processes in measurements have the same
// settings of the Go runtime, which the runtime still has.
func TestRuntimeSettings(t *testing.T) {
	setting := strings.TrimPrefix(servers.Runtime, "GODEBUG=")
	for file, settings := range map[string][]string{
		"build":                               {"monitor=" + setting, "frontdoor) godebug=$monitor", strings.Join(servers.OneProcessor, " | ") + ") godebug=$monitor gomaxprocs=1 ;;"},
		"../helm/portico/templates/etcd.yaml": {setting, "GOMAXPROCS"},
		"../helm/portico/templates/nats.yaml": {setting, "GOMAXPROCS"},
		"../../docs/operations/images.md":     {setting, "GOMAXPROCS=1"},
	} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range settings {
			if !bytes.Contains(content, []byte(one)) {
				t.Errorf("%s lacks %s", file, one)
			}
		}
	}
	source, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(source)), "src/runtime/proc.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(scheduler, []byte("debug.schedtrace <= 0 && (sched.gcwaiting")) {
		t.Error("the monitor of the scheduler is another one: measure the setting again")
	}
}
