package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// clientTexts are the folders with data and scripts whose texts clients see.
var clientTexts = []string{"frontdoor/internal/typesystem", "frontdoor/internal/handlers/console"}

func identifierRules() []Rule {
	return []Rule{{"texts for clients name no functions of the code",
		"write the word that the text means: a rename of the function has changed the text, too", checkIdentifiers}}
}

var (
	// oneWord is a name in camel case, and inProse such a word within a text.
	oneWord = regexp.MustCompile(`^[a-z]+[A-Z]\w*$`)
	inProse = regexp.MustCompile(`(?:^|[ (])([a-z]+[A-Z]\w*)(?:[.,;:)]?(?: |$))`)
	// described is a description in YAML, and stringText a text in a script.
	described  = regexp.MustCompile(`description: *("[^"]*"|[^,}]*)`)
	stringText = regexp.MustCompile("\"[^\"]*\"|'[^']*'|`[^`]*`")
	jsonName   = regexp.MustCompile(`json:"(\w+)`)
)

// checkIdentifiers searches the texts of programs, descriptions and the console for names of functions and
// types. Names that are also those of members or flags, which stand alone in a text somewhere, are allowed.
func checkIdentifiers(w *Workspace) []Finding {
	names := w.functions()
	found := w.eachFile(func(f *File) (found []Finding) {
		if forDevelopers(f.Path) {
			return nil
		}
		texts(f.AST, func(text string) { found = append(found, names.in(f.Path, text)...) })
		return found
	})
	for _, folder := range clientTexts {
		_ = filepath.WalkDir(filepath.Join(w.root, folder), func(path string, d fs.DirEntry, err error) error {
			pattern := map[string]*regexp.Regexp{".yaml": described, ".js": stringText}[filepath.Ext(path)]
			if err != nil || d.IsDir() || pattern == nil {
				return nil //nolint:nilerr // there are no texts
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, text := range pattern.FindAllString(string(content), -1) {
				found = append(found, names.in(strings.TrimPrefix(path, w.root+"/"), strings.Trim(text, "\"'`"))...)
			}
			return nil
		})
	}
	return found
}

// functionNames are names of functions and types in camel case.
type functionNames map[string]bool

// functions returns the names of functions and types that are nothing else.
func (w *Workspace) functions() functionNames {
	names := functionNames{}
	defer delete(names, "groupVersion") // a word of Kubernetes' messages
	for _, p := range w.Packages {
		for _, f := range p.source() {
			for _, d := range f.AST.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					names[d.Name.Name] = oneWord.MatchString(d.Name.Name)
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if t, ok := s.(*ast.TypeSpec); ok {
							names[t.Name.Name] = oneWord.MatchString(t.Name.Name)
						}
					}
				}
			}
		}
	}
	for _, p := range w.Packages {
		for _, f := range p.Files {
			texts(f.AST, func(text string) { delete(names, text) })
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if field, ok := n.(*ast.Field); ok && field.Tag != nil {
					for _, tag := range jsonName.FindAllStringSubmatch(field.Tag.Value, -1) {
						delete(names, tag[1])
					}
				}
				return true
			})
		}
	}
	return names
}

// in returns the findings about a text of at least three words.
func (names functionNames) in(path, text string) (found []Finding) {
	if strings.Count(text, " ") < 2 {
		return nil
	}
	for _, word := range inProse.FindAllStringSubmatch(text, -1) {
		if names[word[1]] {
			found = append(found, Finding{path, fmt.Sprintf("%.60q names the function or type %s", text, word[1])})
		}
	}
	return found
}

// texts calls a function with the strings of a file, without tags of fields.
func texts(file *ast.File, each func(text string)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if text, err := strconv.Unquote(n.Value); err == nil {
					each(text)
				}
			}
		}
		return true
	})
}
