package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheListOnlyGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "passing.txt")
	r := ratchet{list: path, update: true}
	passing, err := readList(path)
	if err != nil || len(passing) != 0 {
		t.Fatalf("no list yet: %v, %v", passing, err)
	}
	broken, fresh := compare(passing, map[string]string{"k8s B-1": "passed", "k8s A-1": "passed", "k8s C-1": "failed"})
	if err := r.report(passing, broken, fresh); err != nil {
		t.Fatal(err)
	}
	if passing, err = readList(path); err != nil {
		t.Fatal(err)
	}
	broken, fresh = compare(passing, map[string]string{"k8s A-1": "skipped", "k8s C-1": "failed", "k8s D-1": "passed"})
	if !slices.Equal(broken, []string{"k8s A-1 skipped"}) || !slices.Equal(fresh, []string{"k8s D-1"}) {
		t.Errorf("broken %q, new %q", broken, fresh)
	}
	if err := r.report(passing, broken, fresh); err == nil {
		t.Error("a listed check that no longer passes is no error")
	}
}

func TestAMissingSuiteIsAnError(t *testing.T) {
	r := ratchet{suite: filepath.Join(t.TempDir(), "absent")}
	if err := r.run([]string{"platform"}); err == nil {
		t.Error("a ratchet without a suite passes")
	}
}

func TestOutcomesOfAnotherSuite(t *testing.T) {
	dir := t.TempDir()
	r := ratchet{list: filepath.Join(dir, "passing.txt"), results: filepath.Join(dir, "results.json"), update: true}
	const comment = "# What passes.\n"
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(r.list, comment)
	write(r.results, `[{"ID":"pods #1","Outcome":"passed","Why":""},{"ID":"exec","Outcome":"failed"}]`)
	if err := r.run(nil); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(r.list); err != nil || string(content) != comment+"pods #1\n" {
		t.Fatalf("%q, %v", content, err)
	}
	write(r.results, `[{"ID":"exec","Outcome":"passed"}]`)
	if err := r.run(nil); err == nil {
		t.Error("a listed check that did not run is no error")
	}
	r.pattern = "exec"
	if err := r.run(nil); err != nil {
		t.Errorf("a check that the pattern left out: %v", err)
	}
	write(r.results, `{`)
	if err := r.run(nil); err == nil {
		t.Error("results that cannot be read are no error")
	}
}
