package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/test/bench/internal/floor"
)

func TestTheDeploymentHasSeventyFields(t *testing.T) {
	var d map[string]any
	if err := json.Unmarshal(load.Deployment("web"), &d); err != nil {
		t.Fatal(err)
	}
	delete(d, "apiVersion")
	delete(d, "kind")
	if got := leaves(d); got != 70 {
		t.Errorf("got %d fields", got)
	}
}

func leaves(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			n += leaves(each)
		}
	case []any:
		for _, each := range v {
			n += leaves(each)
		}
	default:
		return 1
	}
	return n
}

func TestBodiesAreNumberedInPlace(t *testing.T) {
	for name, text := range map[string][]byte{
		"pod": load.Pod("a", 1), "config map": load.ConfigMap("a"), "deployment": load.Deployment("a"),
		"pod's patch": []byte(podBodies().patch), "config map's patch": []byte(mapBodies().patch),
	} {
		body, err := number(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := body.set(4711); !json.Valid(got) || !strings.Contains(string(got), `"tick-0000004711"`) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if _, err := number([]byte(`{"note":"tick-"}`)); err == nil {
		t.Error("a body without a number was accepted")
	}
}

func TestOnlyChooses(t *testing.T) {
	chosen, err := choose(scenarios(), "^create pods")
	if err != nil || len(chosen) != 2 {
		t.Errorf("got %d scenarios and %v", len(chosen), err)
	}
	if _, err := choose(scenarios(), "nothing of the kind"); err == nil || !strings.Contains(err.Error(), "create pods, 64 clients") {
		t.Errorf("got %v, want an error that lists the names", err)
	}
	if _, err := choose(nil, "("); err == nil {
		t.Error("a malformed expression was accepted")
	}
}

func TestEveryScenarioIsNamedAndHasGoals(t *testing.T) {
	for _, all := range [][]scenario{scenarios(), ofSize()} {
		checkScenarios(t, all)
	}
}

func checkScenarios(t *testing.T, all []scenario) {
	t.Helper()
	seen := map[string]bool{}
	for _, sc := range all {
		if seen[sc.name] || sc.run == nil || sc.part == "" || len(sc.goals) == 0 {
			t.Errorf("%q is a duplicate or has no part, no load or no goal", sc.name)
		}
		seen[sc.name] = true
	}
}

func TestTheFloorSendsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	handler := floor.Handler(file)
	answer := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, pods, nil))
		return w
	}
	if got := answer(); got.Code != http.StatusServiceUnavailable {
		t.Errorf("without a file: %d", got.Code)
	}
	if err := os.WriteFile(file, []byte("the list"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := answer(); got.Code != http.StatusOK || got.Body.String() != "the list" {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
		if err := os.WriteFile(file, []byte("another one"), 0o600); err != nil { // it is in memory
			t.Fatal(err)
		}
	}
}
