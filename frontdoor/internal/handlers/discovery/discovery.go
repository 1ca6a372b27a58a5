package discovery

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Options configures the documents.
type Options struct {
	Catalogue  *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	// Version is the release shown at /version, such as v1.21.14+portico.
	Version version.Info
	// OtherPaths are served elsewhere and listed at /, such as /healthz.
	OtherPaths []string
}

// Documents holds all published documents, by path.
type Documents struct {
	forms map[string][]document
}

// New prepares the documents. It generates none of them.
func New(o Options) *Documents {
	d := &Documents{forms: map[string][]document{}}
	d.addGroups(o)
	d.addOpenAPI(&publisher{catalogue: o.Catalogue, vocabulary: o.Vocabulary, release: o.Version.GitVersion})
	d.add("/version", newDocument(mediaJSON, func() ([]byte, error) { return json.MarshalIndent(o.Version, "", "  ") }))
	d.add("/", newJSON(func() (any, error) {
		paths := slices.Collect(maps.Keys(d.forms))
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == "/" || strings.HasPrefix(p, "/openapi/v3/") })
		paths = append(paths, o.OtherPaths...)
		slices.Sort(paths)
		return metav1.RootPaths{Paths: paths}, nil
	}))
	return d
}

// Version returns the document of /version for a release.
func Version(r release.Release) version.Info {
	info := version.Info{
		Major: "1", Minor: minor(r), GitVersion: "v" + r.Patch() + "+portico", GitTreeState: "clean",
		GoVersion: runtime.Version(), Compiler: runtime.Compiler, Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if !r.Before(emulationShown) {
		info.EmulationMajor, info.EmulationMinor = info.Major, info.Minor
		info.MinCompatibilityMajor, info.MinCompatibilityMinor = info.Major, minor(r.Previous())
	}
	return info
}

// emulationShown is the first release whose /version has the emulated version.
var emulationShown, _ = release.Of("1.33")

func minor(r release.Release) string { return strconv.Itoa(r.Minor()) }

func (d *Documents) add(path string, forms ...document) { d.forms[path] = forms }

// addGroups adds the documents about groups, versions and resource types. Those of /api
// and /apis also have aggregated forms.
func (d *Documents) addGroups(o Options) {
	aggregation := o.Vocabulary.Group("apidiscovery.")
	groups := o.Catalogue.Groups()
	core, _ := o.Catalogue.Group("")
	named := slices.DeleteFunc(slices.Clone(groups), func(g catalogue.Group) bool { return g.Name == "" })
	versions := newJSON(func() (any, error) { return coreVersions(core), nil })
	d.add("/api", append([]document{versions}, aggregatedForms(aggregation, []catalogue.Group{core})...)...)
	list := newJSON(func() (any, error) { return groupList(groups), nil })
	d.add("/apis", append([]document{list}, aggregatedForms(aggregation, named)...)...)
	for _, g := range groups {
		root := "/api"
		if g.Name != "" {
			root = "/apis/" + g.Name
			d.add(root, newJSON(func() (any, error) {
				described := group(g)
				described.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return described, nil
			}))
		}
		for _, v := range g.Versions {
			d.add(root+"/"+v.Version, newJSON(func() (any, error) {
				return resourceList(v.Types[0].APIVersion(), v.Types), nil
			}))
		}
	}
}

// Serve writes the document at the request's path in the negotiated form: NotFound
// (404) if there is none, MethodNotAllowed (405) for methods other than GET and HEAD,
// NotAcceptable (406) if no form matches.
func (d *Documents) Serve(w http.ResponseWriter, r *http.Request) error {
	forms, ok := d.forms[clean(r.URL.Path)]
	if !ok {
		return d.missing(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return &services.Status{Code: http.StatusMethodNotAllowed, Reason: services.ReasonMethodNotAllowed,
			Message: fmt.Sprintf("%s is read-only", r.URL.Path)}
	}
	return serve(w, r, forms)
}

// missing writes the 404: a Status for a path within a known group, plain text for
// others.
func (d *Documents) missing(w http.ResponseWriter, r *http.Request) error {
	parts := strings.SplitN(r.URL.Path, "/", 4)
	if _, known := d.forms["/apis/"+parts[min(2, len(parts)-1)]]; !known && parts[1] != "api" {
		http.NotFound(w, r)
		return nil
	}
	return &services.Status{Code: http.StatusNotFound, Reason: services.ReasonNotFound,
		Message: "the server could not find the requested resource", Details: &services.StatusDetails{}}
}

// clean removes a trailing slash, which older clients send.
func clean(path string) string {
	if len(path) > 1 {
		return strings.TrimSuffix(path, "/")
	}
	return path
}
