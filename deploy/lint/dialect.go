package lint

import (
	"fmt"
	"go/ast"
	"regexp"
)

// term is an odd word and the standard term to write instead.
type term struct {
	odd     *regexp.Regexp
	instead string
}

// terms are words that readers of this field do not expect.
func terms() []term {
	list := []struct{ odd, instead string }{
		{`tells? whether`, "reports whether"},
		{`carriage`, "transport"},
		{`furnish\w*`, "add defaults"},
		{`junctors?`, "combinator (allOf, anyOf, oneOf)"},
		{`customs`, "custom types, or CRDs"},
		{`deeds?`, "action"},
		{`dear(er|est)?`, "expensive"},
		{`glanced?`, "read from the cache"},
		{`believ\w+`, "valid, or accepted"},
		{`unseat\w*`, "take over"},
		{`outrun\w*`, "lose a race"},
		{`in vain`, "without success"},
		{`nobody is there`, "unavailable"},
		{`(is|are) told who`, "may see"},
		{`(say|says|said) goodbye`, "close, or disconnect"},
		{`whatever becomes of`, "even if it fails"},
		{`in the eyes of`, "as seen by"},
		{`(make|makes|made) up for`, "compensate for"},
	}
	out := make([]term, len(list))
	for i, l := range list {
		out[i] = term{regexp.MustCompile(`(?i)\b` + l.odd + `\b`), l.instead}
	}
	return out
}

func dialectRules() []Rule {
	return []Rule{{"names and comments use the field's words",
		"write the standard term that the finding names; the list is in deploy/lint/dialect.go", checkDialect}}
}

// checkDialect finds odd words in comments and in names.
func checkDialect(w *Workspace) (found []Finding) {
	words := terms()
	look := func(f *File, n ast.Node, text string) {
		for _, t := range words {
			if odd := t.odd.FindString(text); odd != "" {
				found = append(found, Finding{w.at(f, n), fmt.Sprintf("%q: write %s", odd, t.instead)})
			}
		}
	}
	for _, p := range w.Packages {
		if p.Dir == "deploy/lint" {
			continue
		}
		for _, f := range p.Files {
			for _, group := range f.AST.Comments {
				look(f, group, group.Text())
			}
			ast.Inspect(f.AST, func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok {
					look(f, name, name.Name)
				}
				return true
			})
		}
	}
	return found
}
