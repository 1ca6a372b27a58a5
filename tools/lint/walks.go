package lint

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The pages that walk through the code, and the file that lists the stages of a request.
const (
	requestPage  = "docs/request.md"
	watchPage    = "docs/watch.md"
	stagesSource = "frontdoor/pipeline.go"
)

func walkRules() []Rule {
	return []Rule{
		{"the pages that walk through the code name what exists",
			"mend the page: it names a folder, file or function that was moved or renamed", checkNamesOfWalks},
		{"the request page lists the stages of the pipeline in their order",
			"give " + requestPage + " a row for each stage of " + stagesSource, checkStages},
	}
}

var (
	code       = regexp.MustCompile("`([^`]+)`")
	sourcePath = regexp.MustCompile(`^[a-z][\w-]*(/[\w.-]+)+$`)
	identifier = regexp.MustCompile(`^\w+(\.\w+)*$`)
	row        = regexp.MustCompile(`(?m)^\| ([a-z]+) \|`)
)

// checkNamesOfWalks searches for the folders and files that the pages name, and for the
// functions and types in the rows of the request page that have a column for them.
func checkNamesOfWalks(w *Workspace) (found []Finding) {
	declared := w.declaredNames()
	for _, page := range []string{requestPage, watchPage} {
		text, err := os.ReadFile(filepath.Join(w.root, page))
		if err != nil {
			found = append(found, Finding{page, err.Error()})
			continue
		}
		for _, c := range code.FindAllStringSubmatch(string(text), -1) {
			if sourcePath.MatchString(c[1]) && !w.existsInSource(c[1]) {
				found = append(found, Finding{page, "names " + c[1] + ", which does not exist"})
			}
		}
		for _, name := range functionsOfSteps(string(text)) {
			if !declared[name[strings.LastIndex(name, ".")+1:]] {
				found = append(found, Finding{page, "names " + name + ", which is not declared"})
			}
		}
	}
	return found
}

// existsInSource reports whether a path exists below the root, or below the folders that
// the pages omit. A page may name a gRPC method as Service/Method.
func (w *Workspace) existsInSource(path string) bool {
	for _, above := range []string{"", "frontdoor/internal"} {
		if _, err := os.Stat(filepath.Join(w.root, above, path)); err == nil {
			return true
		}
	}
	return false
}

// functionsOfSteps returns the names in the second column of tables of four columns.
func functionsOfSteps(page string) (names []string) {
	for line := range strings.Lines(page) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(columns) != 4 || !strings.HasPrefix(line, "|") {
			continue
		}
		for _, c := range code.FindAllStringSubmatch(columns[1], -1) {
			if identifier.MatchString(c[1]) {
				names = append(names, c[1])
			}
		}
	}
	return names
}

// declaredNames returns the names of all functions, methods, types and fields.
func (w *Workspace) declaredNames() map[string]bool {
	declared := map[string]bool{}
	for _, p := range w.Packages {
		for _, f := range p.Files {
			ast.Inspect(f.AST, func(n ast.Node) bool {
				switch d := n.(type) {
				case *ast.FuncDecl:
					declared[d.Name.Name] = true
				case *ast.TypeSpec:
					declared[d.Name.Name] = true
				case *ast.Field:
					for _, name := range d.Names {
						declared[name.Name] = true
					}
				}
				return true
			})
		}
	}
	return declared
}

// checkStages compares the first table of the request page with the names of the stages.
func checkStages(w *Workspace) []Finding {
	page, err := os.ReadFile(filepath.Join(w.root, requestPage))
	if err != nil {
		return []Finding{{requestPage, err.Error()}}
	}
	source, err := os.ReadFile(filepath.Join(w.root, stagesSource))
	if err != nil {
		return []Finding{{stagesSource, err.Error()}}
	}
	first, _, _ := strings.Cut(string(page), "\n## ")
	listed := firstGroups(row, first)
	if len(listed) > 0 && listed[0] == "stage" {
		listed = listed[1:]
	}
	stages := firstGroups(regexp.MustCompile(`\{Name: "(\w+)", Wrap:`), string(source))
	if len(stages) == 0 || !slices.Equal(listed, stages) {
		return []Finding{{requestPage, fmt.Sprintf("lists the stages %v, but they are %v", listed, stages)}}
	}
	return nil
}

// firstGroups returns the first group of each match.
func firstGroups(pattern *regexp.Regexp, text string) (groups []string) {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		groups = append(groups, m[1])
	}
	return groups
}
