// Package console serves the web console: files that are the same for everybody, and the
// exchange of a code of OpenID Connect for a token. All that the console shows comes from the
// API, with the rights of the user who is logged in.
package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services/kit/run/routes"
	"github.com/portico-platform/portico/services/vocabulary"
)

//go:embed assets
var assets embed.FS

// policy lets pages load and ask nothing but this host, run no inline script, and be part of
// no other site.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// prefix is where the console is.
const prefix = "/console"

// Settings are the flags. Register them before New.
type Settings struct {
	on   bool
	oidc oidcSettings
}

// Register declares the flags.
func (s *Settings) Register(fs *pflag.FlagSet) {
	fs.BoolVar(&s.on, "console", true, "serve the web console at /console/, to anyone who can connect; it has the rights of the user who logs in")
	s.oidc.register(fs)
}

// Console serves the pages; nil serves none.
type Console struct{ router http.Handler }

// New returns what the flags say. Invalid flags are usage errors.
func (s *Settings) New(v vocabulary.Vocabulary, version string) (*Console, error) {
	if !s.on {
		return nil, s.oidc.unused()
	}
	login, err := s.oidc.new()
	if err != nil {
		return nil, err
	}
	files, err := load()
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(map[string]any{
		"version": version, "vocabulary": v.Name, "oidc": login != nil,
		"groups": map[string]string{
			"meta": v.Group("meta."), "discovery": v.Group("apidiscovery."),
			"authentication": v.Group("authentication."), "authorization": v.Group("authorization."),
		},
	})
	if err != nil {
		return nil, err
	}
	files["settings.json"] = newFile("settings.json", settings)
	router := routes.New()
	router.Get(prefix, http.RedirectHandler(prefix+"/", http.StatusMovedPermanently).ServeHTTP)
	router.Get(prefix+"/*", files.serve)
	if login != nil {
		login.routes(router)
	}
	return &Console{router: router}, nil
}

// Pages is the stage that serves the console. Its files need no credentials: who has none
// needs them to log in.
func (c *Console) Pages(next request.Handler) request.Handler {
	if c == nil {
		return next
	}
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.URL.Path != prefix && !strings.HasPrefix(r.URL.Path, prefix+"/") {
			return next(w, r)
		}
		r.Verb = strings.ToLower(r.Method)
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		c.router.ServeHTTP(w, r.Request)
		return nil
	}
}

// files are the contents by path.
type files map[string]*file

type file struct {
	content     []byte
	contentType string
	etag        string
}

func newFile(name string, content []byte) *file {
	sum := sha256.Sum256(content)
	return &file{content: content, contentType: mime.TypeByExtension(path.Ext(name)), etag: `"` + hex.EncodeToString(sum[:8]) + `"`}
}

func load() (files, error) {
	found := files{}
	return found, fs.WalkDir(assets, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assets.ReadFile(name)
		found[strings.TrimPrefix(name, "assets/")] = newFile(name, content)
		return err
	})
}

func (all files) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	if name == "" {
		name = "index.html"
	}
	f := all[name]
	if f == nil {
		http.Error(w, "404 page not found", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("Etag", f.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.content))
}
