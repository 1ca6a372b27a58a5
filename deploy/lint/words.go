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
	// minComment is how many characters make a package comment prose; commands,
	// which only start a package that has one, may be brief.
	minComment, minCommandComment = 100, 40
	// nameTable is the one package that writes the maker's names.
	nameTable = "services/vocabulary"
	// architecture is the page with the picture of the whole.
	architecture = "docs/architecture.md"
)

func wordRules() []Rule {
	return []Rule{
		{"every package has a comment in prose",
			"say what it decides, what it never does and which section of the specification it serves", checkComments},
		{"no package is named for being shared",
			"name the package after its idea: what would one look up to find it?", checkNames},
		{"the maker's names are written in " + nameTable + " alone",
			"ask the vocabulary for the name, so that both vocabularies work; overlay data and tests are exempt", checkMakersNames},
		{"the architecture page names every module",
			"say in " + architecture + " what the module is for, in a line", checkArchitecture},
	}
}

func checkComments(w *Workspace) (found []Finding) {
	for _, p := range w.Packages {
		source, least := p.source(), minComment
		if p.Name == "main" {
			least = minCommandComment
		}
		said := slices.ContainsFunc(source, func(f *File) bool {
			return f.AST.Doc != nil && len(f.AST.Doc.Text()) >= least
		})
		if len(source) > 0 && !said {
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

func checkMakersNames(w *Workspace) []Finding {
	names := makersNames()
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
					found = append(found, Finding{w.at(f, literal), fmt.Sprintf("%q writes %q", text, name)})
					break
				}
			}
			return true
		})
		return found
	})
}

// makersNames are the words by which a maker's name is known.
func makersNames() []string {
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
