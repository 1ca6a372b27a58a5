package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	project = "github.com/portico-platform/portico/"
	// contracts is the module that all modules may import, kit the one that all services
	// may import, and composer the module at the root, which may import all modules.
	contracts, kit, composer = "services", "services/kit", "."
	// sdk is the module that admission services of others are built with, and examples the
	// folder of such services, each a module.
	sdk, examples = "admission/sdk", "admission/examples"
	// documentation is the module of the pages that the front door shows.
	documentation, shower = "docs", "frontdoor"
	// maxDepth bounds the number of packages on any import path from the program of the
	// front door to the package of object keys.
	maxDepth             = 9
	program, objectNames = "frontdoor/cmd/frontdoor", "services/resource"
)

func importRules() []Rule {
	return []Rule{
		{"a module imports services and services/kit, and no sibling",
			"call the other service through its contract: get it with Use of services/kit/contract", checkImports},
		{"the contracts have few dependencies",
			"move the code that needs the dependency to services/kit, or to the service: every implementation of a contract depends on all of services/go.mod, and every admission service on admission/sdk/go.mod", checkContracts},
		{"the layers of the front door import downwards",
			"move the package to its layer, or its dependency to a lower layer: see layers in tools/lint/imports.go", checkLayers},
		{fmt.Sprintf("the import depth of the front door is at most %d", maxDepth),
			"inject the value, or move the imported code into a package below both", checkDepth},
		{"one version of each dependency",
			"run make tidy, which sets the same versions in all modules", checkVersions},
	}
}

func checkImports(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		module := moduleOf(filepath.ToSlash(p.Dir))
		for _, f := range p.Files {
			for _, spec := range f.AST.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				inside, ours := strings.CutPrefix(path, project)
				if ours && (!mayImport(module, moduleOf(inside)) || !f.Test && forDevelopers(inside) && !forDevelopers(p.Dir)) {
					found = append(found, Finding{w.at(f, spec), "imports " + path})
				}
			}
		}
	}
	return found
}

// moduleOf returns the module of a folder of the workspace.
func moduleOf(dir string) string {
	for _, nested := range []string{kit, sdk} {
		if dir == nested || strings.HasPrefix(dir, nested+"/") {
			return nested
		}
	}
	if example, ok := strings.CutPrefix(dir, examples+"/"); ok {
		name, _, _ := strings.Cut(example, "/")
		return examples + "/" + name
	}
	module, _, _ := strings.Cut(dir, "/")
	if slices.Contains(composed(), module) {
		return composer
	}
	return module
}

// composed returns the folders of the module at the root.
func composed() []string { return []string{"cmd", "deploy", "internal", "test", "testing", "tools"} }

// forDevelopers reports whether a folder is for those who work on the project and no part of a program that
// users run.
func forDevelopers(dir string) bool {
	top, _, _ := strings.Cut(dir, "/")
	return top == "test" || top == "tools" || top == "deploy"
}

// mayImport reports whether packages of one module may import those of another.
func mayImport(module, other string) bool {
	switch module {
	case other, composer:
		return true
	case contracts:
		return false
	case sdk:
		return other == contracts
	}
	if strings.HasPrefix(module, examples+"/") {
		return other == contracts || other == sdk
	}
	return other == contracts || other == kit || module == shower && other == documentation
}

// heavy returns words in the names of modules that only services/kit and the services need.
func heavy() []string {
	return []string{"etcd", "nats", "client-go", "prometheus", "portico"}
}

// checkContracts finds heavy modules among the requirements of the contracts and of the
// SDK, direct or indirect.
func checkContracts(w *Workspace) (found []Finding) {
	for _, module := range []string{contracts, sdk} {
		if !slices.Contains(w.Modules, module) {
			continue
		}
		requires, err := requirements(filepath.Join(w.root, module))
		if err != nil {
			return append(found, Finding{module, err.Error()})
		}
		for _, path := range slices.Sorted(maps.Keys(requires)) {
			if module == sdk && path == project+contracts {
				continue
			}
			if slices.ContainsFunc(heavy(), func(word string) bool { return strings.Contains(path, word) }) {
				found = append(found, Finding{module + "/go.mod", "requires " + path})
			}
		}
	}
	return found
}

func checkVersions(w *Workspace) (found []Finding) {
	type use struct{ module, version string }
	first := map[string]use{}
	for _, module := range w.Modules {
		requires, err := requirements(filepath.Join(w.root, module))
		if err != nil {
			return append(found, Finding{module, err.Error()})
		}
		for path, version := range requires {
			was, known := first[path]
			if !known {
				first[path] = use{module, version}
			} else if was.version != version {
				found = append(found, Finding{module + "/go.mod",
					fmt.Sprintf("requires %s %s, but %s/go.mod %s", path, version, was.module, was.version)})
			}
		}
	}
	return found
}

// requirements returns the required versions in a module's go.mod.
func requirements(dir string) (map[string]string, error) {
	out, err := exec.Command("go", "-C", dir, "mod", "edit", "-json").Output()
	if err != nil {
		return nil, fmt.Errorf("go mod edit: %w", err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&mod); err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, r := range mod.Require {
		versions[r.Path] = r.Version
	}
	return versions, nil
}

// layers returns the allowed imports of each layer of the front door, by the folder in
// frontdoor/internal: HTTP processing (http), request handlers (handlers), types
// (typesystem), encodings (wire), the initial objects of every cluster (bootstrap), and the
// services that it calls (backends).
func layers() map[string][]string {
	return map[string][]string{
		"backends":   {},
		"http":       {"typesystem"},
		"handlers":   {"http", "typesystem", "wire"},
		"typesystem": {},
		"wire":       {"typesystem"},
		"bootstrap":  {"typesystem"},
	}
}

const layered = "frontdoor/internal/"

// checkLayers finds packages of the front door outside all layers, and imports of a layer
// that the package's layer may not import.
func checkLayers(w *Workspace) (found []Finding) {
	layerOf := func(path string) (string, bool) {
		inside, ok := strings.CutPrefix(path, layered)
		layer, _, _ := strings.Cut(inside, "/")
		return layer, ok
	}
	for _, p := range w.Packages {
		layer, ok := layerOf(filepath.ToSlash(p.Dir))
		if !ok {
			continue
		}
		allowed, known := layers()[layer]
		if !known {
			found = append(found, Finding{p.Dir, "is not in a layer"})
			continue
		}
		for _, f := range p.source() {
			for _, spec := range f.AST.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				inside, _ := strings.CutPrefix(path, project)
				if other, ok := layerOf(inside); ok && other != layer && !slices.Contains(allowed, other) {
					found = append(found, Finding{w.at(f, spec), layer + " imports " + inside})
				}
			}
		}
	}
	return found
}

// checkDepth finds the longest import path through packages of the front door from its
// program to the package of object keys.
func checkDepth(w *Workspace) []Finding {
	imports := map[string][]string{}
	for _, p := range w.Packages {
		dir := filepath.ToSlash(p.Dir)
		for _, f := range p.source() {
			for _, spec := range f.AST.Imports {
				path, _ := strconv.Unquote(spec.Path.Value)
				if inside, ours := strings.CutPrefix(path, project); ours && (inside == objectNames || strings.HasPrefix(inside, "frontdoor")) {
					imports[dir] = append(imports[dir], inside)
				}
			}
		}
	}
	known := map[string][]string{objectNames: {objectNames}}
	var longest func(dir string) []string
	longest = func(dir string) []string {
		way, seen := known[dir]
		if seen {
			return way
		}
		for _, next := range imports[dir] {
			if rest := longest(next); len(rest) > 0 && len(rest) >= len(way) {
				way = append([]string{dir}, rest...)
			}
		}
		known[dir] = way
		return way
	}
	way := longest(program)
	if between := len(way) - 2; between > maxDepth {
		return []Finding{{program, fmt.Sprintf("%d packages: %s", between, strings.Join(way, " > "))}}
	}
	return nil
}
