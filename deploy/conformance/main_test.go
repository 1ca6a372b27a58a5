package main

import (
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
