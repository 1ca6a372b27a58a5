package lint

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/portico-platform/portico/internal/markdown"
)

func pageRules() []Rule {
	return []Rule{
		{"links between pages lead somewhere",
			"mend the link: the file or the heading was moved or renamed", checkLinks},
		{"command blocks are run by a test",
			"begin the block with ```sh, or with ```sh norun=reason-in-a-few-words if test/e2e cannot run it", checkCommands},
	}
}

// checkLinks finds relative links to files that do not exist, and to headings that do not.
func checkLinks(w *Workspace) (found []Finding) {
	all, err := markdown.Read(w.root)
	if err != nil {
		return []Finding{{"*.md", err.Error()}}
	}
	for name, p := range all {
		for _, link := range p.Links {
			if what := misled(w.root, name, link, all); what != "" {
				found = append(found, Finding{name, fmt.Sprintf("links to %s, %s", link, what)})
			}
		}
	}
	return found
}

// misled returns what is wrong with a link of a page; "" if it leads somewhere or to another host.
func misled(root, from, link string, all map[string]*markdown.Page) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	target, anchor, hasAnchor := strings.Cut(link, "#")
	path := from
	if target != "" {
		path = filepath.ToSlash(filepath.Join(filepath.Dir(from), filepath.FromSlash(target)))
	}
	if _, err := os.Stat(filepath.Join(root, path)); err != nil {
		return "which does not exist"
	}
	if hasAnchor && all[path] != nil && !slices.Contains(all[path].Anchors, anchor) {
		return "which has no such heading"
	}
	return ""
}

var (
	command = regexp.MustCompile(`^(\w+=\S*\s+)*(portico|kubectl|make|bin/\S+|curl|go|helm|docker|pip|export|eval|cd|cat) `)
	norun   = regexp.MustCompile(`^norun=[a-z]+(-[a-z]+)*$`)
)

// checkCommands finds blocks of commands without the mark that they are run, or why not.
func checkCommands(w *Workspace) (found []Finding) {
	all, err := markdown.Read(w.root)
	if err != nil {
		return []Finding{{"*.md", err.Error()}}
	}
	for name, p := range all {
		for _, b := range p.Blocks {
			switch {
			case b.Language == "" && command.MatchString(b.Text):
				found = append(found, Finding{name, fmt.Sprintf("has commands in a block that is not marked: %.60q", b.Text)})
			case b.Language == "sh" && b.Info != "" && !norun.MatchString(b.Info):
				found = append(found, Finding{name, fmt.Sprintf("marks a block with %q", b.Info)})
			}
		}
	}
	return found
}
