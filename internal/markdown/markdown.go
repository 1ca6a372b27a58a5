// Package markdown reads the pages in Markdown of the project: their links, the anchors of their headings,
// and their blocks of code. Rules and tests apply to all pages of the source.
package markdown

import (
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

// Page is a parsed page.
type Page struct {
	// Links are the destinations of links and images.
	Links []string
	// Anchors are the identifiers of the headings.
	Anchors []string
	Blocks  []Block
}

// Block is a block of code. An indented one has no info string.
type Block struct {
	// Language is the first word of the info string, and Info the rest.
	Language, Info string
	Text           string
}

// Read returns all pages below a folder by their paths in it, except those of test data.
func Read(root string) (map[string]*Page, error) {
	pages := map[string]*Page{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err == nil && d.IsDir() && path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err == nil {
			pages[filepath.ToSlash(relative)], err = read(path)
		}
		return err
	})
	return pages, err
}

func read(path string) (*Page, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &Page{}
	root := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID())).Parser().Parse(text.NewReader(source))
	return p, ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			p.add(n, source)
		}
		return ast.WalkContinue, nil
	})
}

func (p *Page) add(n ast.Node, source []byte) {
	switch n := n.(type) {
	case *ast.Link:
		p.Links = append(p.Links, string(n.Destination))
	case *ast.Image:
		p.Links = append(p.Links, string(n.Destination))
	case *ast.Heading:
		if id, ok := n.AttributeString("id"); ok {
			p.Anchors = append(p.Anchors, string(id.([]byte)))
		}
	case *ast.CodeBlock:
		p.Blocks = append(p.Blocks, Block{Text: lines(n, source)})
	case *ast.FencedCodeBlock:
		b := Block{Text: lines(n, source)}
		if n.Info != nil {
			b.Language, b.Info, _ = strings.Cut(strings.TrimSpace(string(n.Info.Segment.Value(source))), " ")
		}
		p.Blocks = append(p.Blocks, b)
	}
}

func lines(n ast.Node, source []byte) string {
	var out strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		out.Write(line.Value(source))
	}
	return out.String()
}
