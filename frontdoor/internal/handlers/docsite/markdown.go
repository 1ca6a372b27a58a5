package docsite

import (
	"bytes"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/portico-platform/portico/docs"
)

// document is a parsed page.
type document struct {
	name   string
	source []byte
	root   ast.Node
}

// markdown returns the parser and renderer, which escapes HTML.
func markdown() goldmark.Markdown {
	// Alignment as an attribute: the content security policy forbids styles in pages.
	table := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	return goldmark.New(goldmark.WithExtensions(table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

// parse reads a page. Links to files that the site does not have, such as source code, become text.
func parse(name string, source []byte, has func(name string) bool) *document {
	d := &document{name: name, source: source, root: markdown().Parser().Parse(text.NewReader(source))}
	var broken []ast.Node
	d.walk(func(n ast.Node) {
		if link, ok := n.(*ast.Link); ok && !d.leads(string(link.Destination), has) {
			broken = append(broken, n)
		}
	})
	for _, link := range broken {
		for child := link.FirstChild(); child != nil; child = link.FirstChild() {
			link.Parent().InsertBefore(link.Parent(), link, child)
		}
		link.Parent().RemoveChild(link.Parent(), link)
	}
	return d
}

// leads reports whether a link of the page leads to another host or to a page of the site.
func (d *document) leads(to string, has func(string) bool) bool {
	target, _, _ := strings.Cut(to, "#")
	return target == "" || strings.HasPrefix(to, "https://") || has(path.Join(path.Dir(d.name), target))
}

func (d *document) walk(visit func(ast.Node)) {
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // visit returns no errors
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

func (d *document) html() ([]byte, error) {
	var out bytes.Buffer
	err := markdown().Renderer().Render(&out, d.source, d.root)
	return out.Bytes(), err
}

// title returns the first heading.
func (d *document) title() string {
	title := d.name
	d.walk(func(n ast.Node) {
		if h, ok := n.(*ast.Heading); ok && title == d.name {
			title = d.textOf(h)
		}
	})
	return title
}

// textOf returns the text of a node without its markup.
func (d *document) textOf(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(d.source))
				if n.SoftLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			for i := 0; entering && i < n.Lines().Len(); i++ {
				line := n.Lines().At(i)
				out.Write(line.Value(d.source))
			}
		}
		if !entering && n.Type() == ast.TypeBlock {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(out.String()), " ")
}

// entry is a section of a page, as the search knows it.
type entry struct {
	Path    string `json:"path"` // with the anchor
	Page    string `json:"page"`
	Section string `json:"section,omitempty"`
	Text    string `json:"text"`
}

// entries returns the sections of the page.
func (d *document) entries() (all []entry) {
	page := d.title()
	all = append(all, entry{Path: d.name, Page: page})
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			if h.Level > 1 {
				id, _ := h.AttributeString("id")
				anchor, _ := id.([]byte)
				all = append(all, entry{Path: d.name + "#" + string(anchor), Page: page, Section: d.textOf(h)})
			}
			continue
		}
		last := &all[len(all)-1]
		last.Text = strings.TrimSpace(last.Text + " " + d.textOf(n))
	}
	return all
}

// section is a part of the navigation.
type section struct {
	Title string
	Links []link
}

type link struct{ Path, Title string }

// readContents returns the navigation: the lists of the table of contents by their headings, and the
// reference pages.
func readContents() (all []section) {
	source, err := docs.Files.ReadFile(contents)
	if err != nil {
		return nil // embedded
	}
	d := parse(contents, source, func(string) bool { return true })
	d.walk(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level > 1 {
				all = append(all, section{Title: d.textOf(n)})
			}
		case *ast.Link:
			if _, listed := n.Parent().Parent().(*ast.ListItem); listed && len(all) > 0 {
				last := &all[len(all)-1]
				last.Links = append(last.Links, link{string(n.Destination), d.textOf(n)})
			}
		}
	})
	return append(all, section{"Reference", []link{{"reference/kinds", "Kinds"}, {"reference/flags", "Flags"}, {"reference/metrics", "Metrics"}}})
}
