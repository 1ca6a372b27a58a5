// Package lint contains rules that a compiler does not check: the sizes of files and
// functions, the allowed imports, package comments, wording and others. Each finding
// contains advice.
//
// It only reads source text and changes nothing. Its test applies the rules to the whole
// workspace; it serves the section "Budgets" and the import rule of the design.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Finding is one violation of a rule.
type Finding struct {
	Where string // file and line, or a package's folder
	What  string
}

// Rule is one check with advice for its findings.
type Rule struct {
	Name   string
	Advice string
	check  func(w *Workspace) []Finding
}

// Check applies the rule.
func (r Rule) Check(w *Workspace) []Finding { return r.check(w) }

// Rules returns all rules.
func Rules() []Rule {
	return slices.Concat(importRules(), sizeRules(), wordRules(), citationRules(), dialectRules(), securityRules(), textRules(), stateRules(), errorRules(), walkRules(), pageRules(), metricRules(), identifierRules())
}

// Workspace is the parsed source of all modules.
type Workspace struct {
	// Modules are the folders of the modules, relative to the root.
	Modules  []string
	Packages []*Package
	root     string
	files    *token.FileSet
}

// Package is the source in one folder. External tests count as tests of it.
type Package struct {
	Dir   string // relative to the root, as in store/internal/mirror
	Name  string
	Files []*File
}

// File is one parsed source file.
type File struct {
	Path  string // relative to the root
	Test  bool
	Lines int
	AST   *ast.File
}

// Load parses the modules in the go.work file of root. It omits generated files and nested
// modules, which are not part of the workspace.
func Load(root string) (*Workspace, error) {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	w := &Workspace{root: root, files: token.NewFileSet()}
	for _, use := range regexp.MustCompile(`(?m)^\s*(?:use\s+)?(\.\S*)$`).FindAllStringSubmatch(string(work), -1) {
		w.Modules = append(w.Modules, filepath.Clean(use[1]))
	}
	for _, module := range w.Modules {
		if err := w.loadModule(module); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *Workspace) loadModule(module string) error {
	packages := map[string]*Package{}
	top := filepath.Join(w.root, module)
	return filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != top && err == nil || d.Name() == "testdata" || path != top && strings.HasPrefix(d.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		f, err := w.loadFile(path)
		if err != nil || ast.IsGenerated(f.AST) {
			return err
		}
		dir := filepath.Dir(f.Path)
		p := packages[dir]
		if p == nil {
			p = &Package{Dir: dir, Name: strings.TrimSuffix(f.AST.Name.Name, "_test")}
			packages[dir] = p
			w.Packages = append(w.Packages, p)
		}
		p.Files = append(p.Files, f)
		return nil
	})
}

func (w *Workspace) loadFile(path string) (*File, error) {
	parsed, err := parser.ParseFile(w.files, path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	relative, err := filepath.Rel(w.root, path)
	if err != nil {
		return nil, err
	}
	return &File{
		Path: filepath.ToSlash(relative), Test: strings.HasSuffix(path, "_test.go"), AST: parsed,
		Lines: w.files.File(parsed.FileStart).LineCount() - 1,
	}, nil
}

// at returns the file and line of a node.
func (w *Workspace) at(f *File, n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.Path, w.files.Position(n.Pos()).Line)
}

// lines returns the number of lines of a node.
func (w *Workspace) lines(n ast.Node) int {
	return w.files.Position(n.End()).Line - w.files.Position(n.Pos()).Line + 1
}

// source returns the files that are not tests.
func (p *Package) source() []*File {
	return slices.DeleteFunc(slices.Clone(p.Files), func(f *File) bool { return f.Test })
}

// eachFile applies a check to every file of the workspace that is not a test.
func (w *Workspace) eachFile(check func(f *File) []Finding) (found []Finding) {
	for _, p := range w.Packages {
		for _, f := range p.source() {
			found = append(found, check(f)...)
		}
	}
	return found
}
