package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

func linkRules() []Rule {
	return []Rule{{"links between pages lead somewhere",
		"mend the link: the file or the heading was moved or renamed", checkLinks}}
}

// page is a parsed page in Markdown.
type page struct {
	links, anchors []string
}

// checkLinks finds relative links to files that do not exist, and to headings that do not.
func checkLinks(w *Workspace) (found []Finding) {
	pages := map[string]*page{}
	err := filepath.WalkDir(w.root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err == nil && d.IsDir() && path != w.root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		pages[path], err = readPage(path)
		return err
	})
	if err != nil {
		return []Finding{{"*.md", err.Error()}}
	}
	for path, p := range pages {
		where, _ := filepath.Rel(w.root, path)
		for _, link := range p.links {
			if what := misled(path, link, pages); what != "" {
				found = append(found, Finding{where, fmt.Sprintf("links to %s, %s", link, what)})
			}
		}
	}
	return found
}

// misled returns what is wrong with a link of a page; "" if it leads somewhere or to another host.
func misled(from, link string, pages map[string]*page) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return ""
	}
	target, anchor, hasAnchor := strings.Cut(link, "#")
	path := from
	if target != "" {
		path = filepath.Join(filepath.Dir(from), filepath.FromSlash(target))
	}
	if _, err := os.Stat(path); err != nil {
		return "which does not exist"
	}
	if !hasAnchor || pages[path] == nil {
		return ""
	}
	for _, a := range pages[path].anchors {
		if a == anchor {
			return ""
		}
	}
	return "which has no such heading"
}

func readPage(path string) (*page, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &page{}
	root := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID())).Parser().Parse(text.NewReader(source))
	return p, ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok {
				p.anchors = append(p.anchors, string(id.([]byte)))
			}
		}
		return ast.WalkContinue, nil
	})
}
