// Package console serves the web console and the documentation: files that are the same for everybody, and the
// exchange of a code of OpenID Connect for a token. All that the console shows comes from the
// API, with the rights of the user who is logged in.
package console

import (
	"cmp"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/docsite"
	"github.com/portico-platform/portico/frontdoor/internal/http/browsers"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/http/static"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/run"
	"github.com/portico-platform/portico/services/kit/run/routes"
	"github.com/portico-platform/portico/services/ledger"
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
	fs.BoolVar(&s.on, "console", true, "serve the web console at /console/ and the documentation at /docs/, to anyone who can connect; the console has the permissions of the user who logs in")
	s.oidc.register(fs)
}

// Documented is what the documentation is about.
type Documented = docsite.Options

// needed are the resources that the console requests for itself, such as who its user is.
var needed = []string{"selfsubjectreviews", "secrets", "certificatesigningrequests", "admissionservices", "mutatingwebhookconfigurations",
	"validatingwebhookconfigurations", "mutatingadmissionpolicies", "validatingadmissionpolicies"}

// ownType is one of their types.
type ownType struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Resource   string `json:"resource"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// own returns them by resource, in the preferred version. The console does not take them from
// discovery, where an extension could name one of its own like them.
func own(types *catalogue.Catalogue) map[string]ownType {
	found := map[string]ownType{}
	if types == nil {
		return found
	}
	for _, group := range types.Groups() {
		for _, version := range group.Versions {
			for _, t := range version.Types {
				if _, known := found[t.Resource]; !known && slices.Contains(needed, t.Resource) {
					found[t.Resource] = ownType{t.Group, t.Version, t.Resource, t.Kind, t.Namespaced}
				}
			}
		}
	}
	return found
}

// Console serves the pages; nil serves none.
type Console struct {
	router   http.Handler
	browsers *browsers.Headers
}

// New returns what the flags say. Invalid flags are usage errors.
func (s *Settings) New(v vocabulary.Vocabulary, b *browsers.Headers, docs Documented) (*Console, error) {
	if !s.on {
		if b.ConsoleHost != "" {
			return nil, run.Usagef("--console-host: requires --console=true")
		}
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
		"version": docs.Version, "vocabulary": v.Name, "oidc": login != nil,
		"groups": map[string]string{
			"meta": v.Group("meta."), "discovery": v.Group("apidiscovery."),
			"authorization": v.Group("authorization."),
		},
		"types": own(docs.Types),
	})
	if err != nil {
		return nil, err
	}
	files["settings.json"] = static.New("settings.json", settings)
	router := routes.New()
	router.Get(prefix, http.RedirectHandler(prefix+"/", http.StatusMovedPermanently).ServeHTTP)
	router.Get(prefix+"/*", files.serve)
	docsite.New(docs).Routes(router)
	if login != nil {
		login.routes(router)
	}
	return &Console{router: router, browsers: b}, nil
}

// Pages is the stage that serves the console and the documentation. They need no credentials: who
// has none needs the console to log in, and the documentation is that of every installation. With a
// host of its own, both are served for no other one.
func (c *Console) Pages(next request.Handler) request.Handler {
	if c == nil {
		return next
	}
	return func(w http.ResponseWriter, r *request.Request) error {
		if r.URL.Path == "/" && isPageView(r.Request) && c.browsers.ServesConsole(r.Request) {
			w.Header().Set("Vary", "Accept")
			http.Redirect(w, r.Request, prefix+"/", http.StatusFound)
			return nil
		}
		if !within(prefix, r.URL.Path) && !within(docsite.Prefix, r.URL.Path) || !c.browsers.ServesConsole(r.Request) {
			return next(w, r)
		}
		r.Verb = strings.ToLower(r.Method)
		if err := cmp.Or(c.browsers.CheckHost(r.Request), c.browsers.CheckOrigin(r.Request)); err != nil {
			return err
		}
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

// isPageView reports whether a browser requests a page for a person, without credentials in a header.
func isPageView(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Authorization") == "" && strings.HasPrefix(ledger.HeaderList(r.Header, "Accept"), "text/html")
}

// within reports whether a path is a folder or below it.
func within(folder, path string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

// files are the contents by path.
type files map[string]*static.File

func load() (files, error) {
	found := files{}
	return found, fs.WalkDir(assets, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := assets.ReadFile(name)
		found[strings.TrimPrefix(name, "assets/")] = static.New(name, content)
		return err
	})
}

func (all files) serve(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "*")
	if name == "" {
		name = "index.html"
	}
	all[name].ServeHTTP(w, r)
}
