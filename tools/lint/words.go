package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	// minComment is the minimum length of a package comment. Those of commands may be shorter,
	// because commands only start another package.
	minComment, minCommandComment = 100, 40
	// nameTable is the only package that may contain upstream names.
	nameTable = "services/vocabulary"
	// architecture is the page with the overview of all modules.
	architecture = "docs/architecture.md"
)

func wordRules() []Rule {
	return []Rule{
		{"every package has a comment",
			"describe what the package decides, what it never does and which section of the specification it serves", checkComments},
		{"no package has a generic name",
			"name the package after its subject", checkNames},
		{"upstream names are only in " + nameTable,
			"get the name from the vocabulary, so that both vocabularies work; overlay data and tests are exempt", checkUpstreamNames},
		{"the architecture page names every module",
			"describe the purpose of the module in " + architecture + " in one line", checkArchitecture},
	}
}

func checkComments(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		source, least := p.source(), minComment
		if p.Name == "main" {
			least = minCommandComment
		}
		commented := slices.ContainsFunc(source, func(f *File) bool {
			return f.AST.Doc != nil && len(f.AST.Doc.Text()) >= least
		})
		if len(source) > 0 && !commented {
			found = append(found, Finding{p.Dir, fmt.Sprintf("no package comment of at least %d characters", least)})
		}
	}
	return found
}

func checkNames(w *Workspace) (found []Finding) {
	banned := []string{"util", "utils", "common", "helper", "helpers", "shared", "misc", "base", "lib", "types"}
	for _, p := range w.Packages {
		if slices.Contains(banned, p.Name) || slices.Contains(banned, filepath.Base(p.Dir)) {
			found = append(found, Finding{p.Dir, "package " + p.Name})
		}
	}
	return found
}

func checkUpstreamNames(w *Workspace) []Finding {
	names := upstreamNames()
	return w.eachFile(func(f *File) (found []Finding) {
		if strings.HasPrefix(f.Path, nameTable+"/") {
			return nil
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if _, ok := n.(*ast.ImportSpec); ok {
				return false
			}
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			for _, name := range names {
				if strings.Contains(text, name) {
					found = append(found, Finding{w.at(f, literal), fmt.Sprintf("%q contains %q", text, name)})
					break
				}
			}
			return true
		})
		return found
	})
}

// upstreamNames returns the parts that identify upstream names.
func upstreamNames() []string {
	k8s := vocabulary.K8s()
	return []string{
		strings.TrimPrefix(k8s.Group("."), "."), k8s.Domain, k8s.Extension, k8s.Protobuf,
		k8s.Namespace("system"), k8s.Namespace("public"), k8s.Namespace("node-lease"),
	}
}

func checkArchitecture(w *Workspace) (found []Finding) {
	page, err := os.ReadFile(filepath.Join(w.root, architecture))
	if err != nil {
		return []Finding{{architecture, err.Error()}}
	}
	for _, module := range w.Modules {
		if !strings.Contains(string(page), module) {
			found = append(found, Finding{architecture, "does not name " + module})
		}
	}
	return found
}
