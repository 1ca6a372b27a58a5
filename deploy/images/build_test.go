// Package images tests that binaries of images can be built again, byte by byte.
package images

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReproducible builds a service twice, the second time from a copy of the source in
// another folder with nothing in the cache of the compiler: the binaries are the same,
// static and without a trace of where they were made.
func TestReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a service and the standard library")
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	copySource(t, here, elsewhere)
	first, second := built(t, here), built(t, elsewhere, "GOCACHE="+t.TempDir())
	if sha256.Sum256(first) != sha256.Sum256(second) {
		t.Error("the same source has given two binaries")
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

// copySource copies the files that the project consists of.
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

// built builds the binary of the store's image and returns it.
func built(t *testing.T, dir string, env ...string) []byte {
	t.Helper()
	command := exec.Command(filepath.Join(dir, "deploy/images/build"), "store")
	command.Env = append(append(os.Environ(), "BINARIES_ONLY=1", "VERSION=v0.0.0"), env...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	content, err := os.ReadFile(filepath.Join(dir, "bin/images/store/root/program"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
