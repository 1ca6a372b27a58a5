package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// specification is the document whose sections are cited in comments.
const specification = "docs/api.md"

var (
	// citation is a list of quoted names after "section", "sections" or "serves".
	citation = regexp.MustCompile(`(?:[Ss]ections?|serves(?: the)?(?: sections?)?) ((?:"[^"]+"(?:,? and |, )?)+)`)
	quoted   = regexp.MustCompile(`"([^"]+)"`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

func citationRules() []Rule {
	return []Rule{{"comments cite sections that exist",
		"cite the exact name of a heading of " + specification + ", or add the section there", checkCitations}}
}

// checkCitations finds comments that cite a missing section of the specification.
func checkCitations(w *Workspace) (found []Finding) {
	page, err := os.ReadFile(filepath.Join(w.root, specification))
	if err != nil {
		return []Finding{{specification, err.Error()}}
	}
	known := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(string(page), -1) {
		known[strings.TrimSpace(h[1])] = true
	}
	for _, p := range w.Packages {
		for _, f := range p.Files {
			for _, group := range f.AST.Comments {
				for _, name := range cited(group.Text()) {
					if !known[name] {
						found = append(found, Finding{w.at(f, group), fmt.Sprintf("cites %q", name)})
					}
				}
			}
		}
	}
	return found
}

// cited returns the names of the sections that a comment cites.
func cited(comment string) (names []string) {
	text := strings.Join(strings.Fields(comment), " ")
	for _, list := range citation.FindAllStringSubmatch(text, -1) {
		for _, name := range quoted.FindAllStringSubmatch(list[1], -1) {
			names = append(names, name[1])
		}
	}
	return names
}
