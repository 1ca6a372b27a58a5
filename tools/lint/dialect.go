package lint

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// term is an odd word and the standard term to write instead.
type term struct {
	odd     *regexp.Regexp
	instead string
}

// words are odd words and the standard terms for them.
type words []struct{ odd, instead string }

// everywhere are words that readers of this field do not expect.
func everywhere() words {
	return words{
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
		{`(told|tells?) apart`, "identify, or distinguish"},
		{`(at|on) (its|their) word`, "literally"},
		{`on trust`, "without validation"},
		{`there always is`, "always present"},
		{`(has|have) no room for`, "lacks, or has no field for"},
		{`for want of`, "without"},
		{`in silence`, "without a warning"},
		{`takes? note of`, "record"},
		{`heeds?`, "respect, or consider"},
		{`goes by`, "is identified by"},
		{`goes without saying`, "is the default"},
		{`gives? way to`, "is replaced by"},
		{`comes? over to`, "migrate to"},
		{`lets? expect`, "imply"},
		{`fights? with`, "conflict with"},
		{`has a word on`, "decides"},
		{`under a look`, "being validated"},
		{`slip of the pen`, "typing error"},
		{`belongs into`, "must be in"},
		{`fleeting`, "omitempty, or temporary"},
		{`twins?`, "duplicate"},
	}
}

// finished returns folders whose comments have been rewritten in standard terms, and further
// words that must not come back there. Other folders still have them.
func finished() (folders []string, list words) {
	folders = []string{
		"frontdoor/internal/bootstrap", "frontdoor/internal/http", "frontdoor/internal/typesystem", "frontdoor/internal/wire",
		"frontdoor/internal/handlers/admit", "frontdoor/internal/handlers/componentstatus", "frontdoor/internal/handlers/discovery",
		"frontdoor/internal/handlers/feed", "frontdoor/internal/handlers/localservices", "frontdoor/internal/handlers/ownservice",
		"frontdoor/internal/handlers/reads", "frontdoor/internal/handlers/reviews", "frontdoor/internal/handlers/serviceips",
		"frontdoor/internal/handlers/writes", "store", "watch-hub/embedded", "watch-hub/internal",
		"deploy/compose/balancer", "deploy/compose", "deploy/images",
	}
	return folders, words{
		{`whoever`, "the client, the caller, or the service that is meant"},
		{`((?-i:[Nn]obody)|(some|any|every)body)`, "no client, a caller, the component that is meant"},
		{`(is|are|was|were|been|be) told`, "receives, or is configured with"},
		{`told`, "reported, or returned"},
		{`asks? for`, "request, require or specify"},
		{`asked`, "requested, or called"},
		{`looks? (at|for|into)`, "read, validate or search"},
		{`anew`, "again"},
		{`under way`, "in flight, or in progress"},
		{`speaks?`, "support, or use"},
		{`stands? (for|beside)`, "means, or is next to"},
		{`any ?more`, "no longer"},
		{`lives`, "is in, or is valid for"},
		{`good for`, "valid for"},
		{`at hand`, "available, or cached"},
		{`from then on`, "afterwards"},
		{`becomes? of`, "happens to, or the result of"},
		{`wanted`, "requested, desired or expected"},
	}
}

func dialectRules() []Rule {
	return []Rule{{"names and comments use the field's words",
		"write the standard term that the finding names; the list is in tools/lint/dialect.go", checkDialect}}
}

// checkDialect finds odd words in comments and in names.
func checkDialect(w *Workspace) (found []Finding) {
	general := newOddWords(everywhere())
	folders, list := finished()
	strict := newOddWords(append(list, everywhere()...))
	for _, p := range w.Packages {
		words := general
		switch {
		case p.Dir == "tools/lint":
			continue
		case slices.ContainsFunc(folders, func(folder string) bool { return p.Dir == folder || strings.HasPrefix(p.Dir, folder+"/") }):
			words = strict
		}
		for _, f := range p.Files {
			found = append(found, words.inFile(w, f)...)
		}
	}
	return found
}

// oddWords finds the words of one list.
type oddWords struct {
	terms []term
	names map[string]string // advice for names that have been checked, "" for good ones
}

func newOddWords(list words) oddWords {
	o := oddWords{names: map[string]string{}}
	for _, l := range list {
		o.terms = append(o.terms, term{regexp.MustCompile(`(?i)\b` + l.odd + `\b`), l.instead})
	}
	return o
}

// in returns the advice for the odd words of a text; "" if it has none.
func (o oddWords) in(text string) string {
	var advice []string
	for _, t := range o.terms {
		if odd := t.odd.FindString(text); odd != "" {
			advice = append(advice, fmt.Sprintf("%q: write %s", odd, t.instead))
		}
	}
	return strings.Join(advice, "; ")
}

// inFile checks the comments and names of a file.
func (o oddWords) inFile(w *Workspace, f *File) (found []Finding) {
	for _, group := range f.AST.Comments {
		if advice := o.in(strings.Join(strings.Fields(group.Text()), " ")); advice != "" {
			found = append(found, Finding{w.at(f, group), advice})
		}
	}
	ast.Inspect(f.AST, func(n ast.Node) bool {
		name, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		advice, checked := o.names[name.Name]
		if !checked {
			advice = o.in(name.Name)
			o.names[name.Name] = advice
		}
		if advice != "" {
			found = append(found, Finding{w.at(f, name), advice})
		}
		return true
	})
	return found
}
