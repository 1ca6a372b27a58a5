// Package docsite serves the documentation as a site, without other hosts: the pages of docs/,
// rendered when they are first requested, reference pages about what this front door serves, and
// an index for the search in the browser. It is the same for everybody: of the types it describes
// those that are built in, and of the flags their defaults.
package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/docs"
	"github.com/portico-platform/portico/frontdoor/internal/http/static"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/kinds"
)

// Prefix is where the site is.
const Prefix = "/docs"

// contents is the page that lists the others.
const contents = "README.md"

//go:embed assets
var assets embed.FS

// Options are what the reference pages are made of.
type Options struct {
	// Types has the built-in types.
	Types *catalogue.Catalogue
	// Flags are those of the process.
	Flags *pflag.FlagSet
	// Version is shown on every page.
	Version string
}

// Site serves the documentation.
type Site struct {
	Options
	files      map[string]func() (*static.File, error) // contents that are made once
	made       sync.Map                                // likewise, of definitions by their names
	navigation func() []section
	allRules   func() (map[string]*kinds.Rules, error) // by definition
}

// New returns the site. It renders nothing yet.
func New(o Options) *Site {
	s := &Site{Options: o, files: map[string]func() (*static.File, error){}, navigation: sync.OnceValue(readContents)}
	s.allRules = sync.OnceValues(func() (map[string]*kinds.Rules, error) {
		set, err := kinds.Read()
		if err != nil {
			return nil, err
		}
		return set.In(s.Types.Release()), nil
	})
	for _, name := range pages() {
		s.once(name, func() ([]byte, error) { return s.page(name) })
	}
	for name, create := range map[string]func() ([]byte, error){
		"search.json":       s.searchIndex,
		"reference/flags":   s.flags,
		"reference/metrics": s.metrics,
		"reference/kinds":   s.kinds,
	} {
		s.once(name, create)
	}
	for _, name := range []string{"docs.css", "docs.js"} {
		s.once("assets/"+name, func() ([]byte, error) { return assets.ReadFile("assets/" + name) })
	}
	return s
}

// once adds a content that is made when it is first requested.
func (s *Site) once(name string, create func() ([]byte, error)) {
	named := name
	if ext := path.Ext(name); ext == "" || ext == ".md" {
		named = "page.html"
	}
	s.files[name] = sync.OnceValues(func() (*static.File, error) {
		content, err := create()
		return static.New(named, content), err
	})
}

// Routes adds the paths of the site.
func (s *Site) Routes(r chi.Router) {
	r.Get(Prefix, http.RedirectHandler(Prefix+"/", http.StatusMovedPermanently).ServeHTTP)
	r.Get(Prefix+"/*", s.serve)
}

func (s *Site) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	if name == "" {
		name = contents
	}
	file, err := s.find(name)
	if err != nil {
		http.Error(w, "500 the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	file.ServeHTTP(w, r)
}

// onceOf returns the page of a definition; nil if there is none. A page takes milliseconds, which
// clients without credentials could otherwise use up again and again. There are as many as
// built-in definitions.
func (s *Site) onceOf(definition string) (*static.File, error) {
	if s.Types == nil || s.Types.Definitions()[definition] == nil {
		return nil, nil
	}
	once, _ := s.made.LoadOrStore(definition, sync.OnceValues(func() (*static.File, error) { return s.definition(definition) }))
	return once.(func() (*static.File, error))()
}

// find returns nil if there is no such file.
func (s *Site) find(name string) (*static.File, error) {
	if once := s.files[name]; once != nil {
		return once()
	}
	if definition, ok := strings.CutPrefix(name, typesFolder); ok {
		return s.onceOf(definition)
	}
	if path.Ext(name) != ".png" || !fs.ValidPath(name) {
		return nil, nil
	}
	content, err := docs.Files.ReadFile(name)
	if err != nil {
		return nil, nil
	}
	return static.New(name, content), nil
}

// pages returns the names of the pages in Markdown.
func pages() (names []string) {
	_ = fs.WalkDir(docs.Files, ".", func(name string, _ fs.DirEntry, err error) error { // an embedded folder can be read
		if err == nil && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	return names
}

// page renders a page in Markdown.
func (s *Site) page(name string) ([]byte, error) {
	source, err := docs.Files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	d := parse(name, source, s.has)
	body, err := d.html()
	if err != nil {
		return nil, err
	}
	return s.framed(name, d.title(), template.HTML(body)) // made by the renderer, which escapes
}

// has reports whether the site has a page, or a picture.
func (s *Site) has(name string) bool {
	if s.files[name] != nil {
		return true
	}
	info, err := fs.Stat(docs.Files, name)
	return err == nil && !info.IsDir() && path.Ext(name) == ".png"
}

// frame is a page and what is around it.
type frame struct {
	Title, Version, Path string
	Navigation           []section
	Body                 template.HTML
}

// framed returns a whole page.
func (s *Site) framed(name, title string, body template.HTML) ([]byte, error) {
	return execute("frame", frame{Title: title, Version: s.Version, Path: name, Navigation: s.navigation(), Body: body})
}

var templates = sync.OnceValues(func() (*template.Template, error) { return template.ParseFS(assets, "assets/*.tmpl") })

// execute returns what a template makes of data.
func execute(name string, data any) ([]byte, error) {
	all, err := templates()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = all.ExecuteTemplate(&out, name, data)
	return out.Bytes(), err
}

// searchIndex returns all sections of all pages as JSON.
func (s *Site) searchIndex() ([]byte, error) {
	var all []entry
	for _, name := range pages() {
		source, err := docs.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, parse(name, source, s.has).entries()...)
	}
	return json.Marshal(append(all, s.kindEntries()...))
}
