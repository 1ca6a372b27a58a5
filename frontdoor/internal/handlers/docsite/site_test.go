package docsite

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/portico-platform/portico/docs"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/kit/run/routes"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// site returns a function that gets a path of the site with the types of a release.
func site(t *testing.T) (*Site, func(path string) *httptest.ResponseRecorder) {
	t.Helper()
	r, err := release.Parse("1.36")
	if err != nil {
		t.Fatal(err)
	}
	types, err := catalogue.New(catalogue.Options{Vocabulary: vocabulary.K8s(), Release: r})
	if err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.String("bind-address", "::1", "`IP` address to <listen> on")
	if err := fs.Parse([]string{"--bind-address=10.1.2.3"}); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Types: types, Flags: fs, Version: "v1.36"})
	router := routes.New()
	s.Routes(router)
	return s, func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path
		router.ServeHTTP(w, r)
		return w
	}
}

func TestSite(t *testing.T) {
	_, get := site(t)
	for path, want := range map[string]struct {
		code        int
		contentType string
		says        []string
	}{
		"/docs":                        {301, "text/html", nil},
		"/docs/":                       {200, "text/html", []string{"<title>Portico", `<a href="/docs/operations/backup.md">`}},
		"/docs/operations/tools.md":    {200, "text/html", []string{`aria-current="page"`, `<h2 id="what-changed">`, `<code class="language-sh">portico top`, `href="../request.md"`, "v1.36"}},
		"/docs/security.md":            {200, "text/html", []string{"<table>", `<a href="operations/nodes.md">`}},
		"/docs/console/light-list.png": {200, "image/png", nil},
		"/docs/assets/docs.js":         {200, "text/javascript", []string{"/docs/search.json"}},
		"/docs/assets/docs.css":        {200, "text/css", []string{"article"}},
		"/docs/reference/flags":        {200, "text/html", []string{`<code>--bind-address</code> IP`, "::1", "&lt;listen&gt;"}},
		"/docs/reference/metrics":      {200, "text/html", []string{"apiserver_current_inflight_requests", "request_kind"}},
		"/docs/reference/kinds":        {200, "text/html", []string{`/docs/reference/types/io.k8s.api.apps.v1.Deployment`, "AdmissionService", "Revocation"}},
		"/docs/reference/types/io.k8s.api.apps.v1.Deployment": {200, "text/html", []string{"<h2>deployments", "Up-to-date", "deploy", "status (get, patch, update)",
			`<a href="/docs/reference/types/io.k8s.api.apps.v1.DeploymentSpec">`, "selectorMatches"}},
		"/docs/reference/types/io.k8s.api.apps.v1.DeploymentSpec": {200, "text/html", []string{"progressDeadlineSeconds: 600", `<code>template</code> required`, "integer (int32)"}},
		"/docs/reference/types/io.k8s.api.core.v1.ConfigMap":      {200, "text/html", []string{"map of string"}},
		"/docs/none.md":              {404, "text/plain", nil},
		"/docs/reference/types/none": {404, "text/plain", nil},
		"/docs/docs.go":              {404, "text/plain", nil},
		"/docs/go.mod":               {404, "text/plain", nil},
		"/docs/../go.work":           {404, "text/plain", nil},
		"/docs/console/../../x.png":  {404, "text/plain", nil},
		"/docs/assets/pages.tmpl":    {404, "text/plain", nil},
	} {
		w := get(path)
		if w.Code != want.code || !strings.HasPrefix(w.Header().Get("Content-Type"), want.contentType) {
			t.Errorf("%s: %d %s", path, w.Code, w.Header().Get("Content-Type"))
		}
		for _, text := range want.says {
			if !strings.Contains(w.Body.String(), text) {
				t.Errorf("%s has no %s: %.3000s", path, text, w.Body)
			}
		}
	}
	if strings.Contains(get("/docs/reference/flags").Body.String(), "10.1.2.3") {
		t.Error("the value of a flag is shown")
	}
	again := httptest.NewRecorder()
	first := get("/docs/storage.md")
	if first.Header().Get("Etag") == "" || first.Header().Get("Etag") != get("/docs/storage.md").Header().Get("Etag") {
		t.Errorf("entity tag %q", again.Header().Get("Etag"))
	}
}

var (
	destination = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	anchor      = regexp.MustCompile(`\sid="([^"]*)"`)
	needsPolicy = regexp.MustCompile(`<script[^>]*>[^<]|\sstyle="|\son[a-z]+="|javascript:`)
)

// TestEveryLinkOfTheSite follows all links of all pages, those to definitions too, and looks for what
// the content security policy forbids.
func TestEveryLinkOfTheSite(t *testing.T) {
	s, get := site(t)
	paths := []string{"/docs/"}
	anchors := map[string][]string{} // by path
	wanted := map[string][]string{}
	for i := 0; i < len(paths); i++ {
		w := get(paths[i])
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d", paths[i], w.Code)
			continue
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "image/") {
			continue
		}
		if found := needsPolicy.FindString(w.Body.String()); found != "" {
			t.Errorf("%s has %q", paths[i], found)
		}
		anchors[paths[i]] = []string{}
		for _, found := range anchor.FindAllStringSubmatch(w.Body.String(), -1) {
			anchors[paths[i]] = append(anchors[paths[i]], found[1])
		}
		base := httptest.NewRequest(http.MethodGet, paths[i], nil).URL
		for _, found := range destination.FindAllStringSubmatch(w.Body.String(), -1) {
			to, err := base.Parse(found[1])
			if err != nil {
				t.Errorf("%s: %v", paths[i], err)
				continue
			}
			if to.Host != "" || !strings.HasPrefix(to.Path, "/docs/") {
				continue // another host, or the console
			}
			if to.Fragment != "" {
				wanted[to.Path] = append(wanted[to.Path], to.Fragment)
			}
			if !slices.Contains(paths, to.Path) {
				paths = append(paths, to.Path)
			}
		}
	}
	for path, fragments := range wanted {
		for _, f := range fragments {
			if !slices.Contains(anchors[path], f) {
				t.Errorf("%s has no #%s", path, f)
			}
		}
	}
	for _, name := range pages() {
		if name != contents && !slices.Contains(paths, "/docs/"+name) {
			t.Errorf("no page links to %s: list it in docs/README.md", name)
		}
	}
	if len(paths) < 300 || s.has("console") {
		t.Errorf("only %d pages", len(paths))
	}
}

func TestSearch(t *testing.T) {
	_, get := site(t)
	var all []entry
	if err := json.Unmarshal(get("/docs/search.json").Body.Bytes(), &all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []entry{{Path: "operations/tools.md#what-changed", Section: "What changed", Text: "portico history deployments"}, {Path: "reference/types/io.k8s.api.core.v1.Pod", Section: "v1", Text: "po"}} {
		if !slices.ContainsFunc(all, func(e entry) bool {
			return e.Path == want.Path && e.Section == want.Section && strings.Contains(e.Text, want.Text)
		}) {
			t.Errorf("the index has no %+v", want)
		}
	}
}

// TestMarkdown: HTML in a page is not passed on, and a link to what the site has not is text.
func TestMarkdown(t *testing.T) {
	d := parse("a/b.md", []byte("# One `two`\n\na <script>x</script> [code](../../code.go) [page](../c.md#x) <b>y</b>\n\n[bad](javascript:alert)\n"), func(name string) bool { return name == "c.md" })
	body, err := d.html()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(body); strings.Contains(text, "<script") || strings.Contains(text, "javascript") || strings.Contains(text, "code.go") || !strings.Contains(text, `<a href="../c.md#x">page</a>`) {
		t.Errorf("%s", text)
	}
	if d.title() != "One two" {
		t.Errorf("title %q", d.title())
	}
	if _, err := docs.Files.ReadFile(contents); err != nil {
		t.Error(err)
	}
}

// TestDefinitionsAreMadeOnce: clients without credentials cannot make the front door render a page
// again and again, or keep anything of names that it does not know.
func TestDefinitionsAreMadeOnce(t *testing.T) {
	s, get := site(t)
	const pod = typesFolder + "io.k8s.api.core.v1.PodSpec"
	if got := get(Prefix + "/" + pod); got.Code != http.StatusOK {
		t.Fatal(got.Code)
	}
	first, err := s.find(pod)
	if again, _ := s.find(pod); err != nil || first == nil || again != first {
		t.Errorf("a page is made twice: %v", err)
	}
	for _, name := range []string{"", "x", "../../README.md", "io.k8s.api.core.v1.PodSpec/"} {
		if got := get(Prefix + "/" + typesFolder + name); got.Code != http.StatusNotFound {
			t.Errorf("%q: %d", name, got.Code)
		}
	}
	kept := 0
	s.made.Range(func(any, any) bool { kept++; return true })
	if kept != 1 {
		t.Errorf("%d pages are kept", kept)
	}
}
