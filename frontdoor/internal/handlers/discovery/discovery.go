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
	"sync"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run/build"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Options configures the documents.
type Options struct {
	Catalogue  *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	// Extensions are the group versions that other servers serve.
	Extensions []Extension
	// Union adds the types of other front doors to those of this one; nil if they serve the same.
	Union func([]apidiscovery.APIGroupDiscovery) []apidiscovery.APIGroupDiscovery
	// Before are the documents that these replace, with which they share those about OpenAPI
	// for which nothing has changed; nil for none. All other options are the same but Catalogue
	// and Extensions.
	Before *Documents
	// Release is the release that is served.
	Release release.Release
	// Version is the release shown at /version, such as v1.21.14+portico.
	Version version.Info
	// CBOR adds documents in that encoding.
	CBOR bool
	// Address returns the host and port at which members of the cluster reach the server, or "". It is called when a
	// document is requested; nil means "".
	Address func() string
	// OtherPaths are served elsewhere and listed at /, such as /healthz.
	OtherPaths []string
}

// Documents holds all published documents, by path.
type Documents struct {
	// forms are made when one of them is requested.
	forms func() map[string][]document
	// openAPI is what the OpenAPI documents describe, in a generation.
	openAPI described
	generation
	library *Library
}

// New prepares the documents. It generates none of them.
func New(o Options) *Documents {
	before := o.Before
	o.Before = nil // the documents hold their options until they are generated, and must not hold all generations
	d := &Documents{openAPI: describedBy(o)}
	switch {
	case before == nil || before.library.builder.Catalogue != o.Catalogue.OfBuiltIn():
		d.library, d.generation = newLibrary(o), generation{1, time.Now()}
	case before.openAPI.equal(d.openAPI):
		d.library, d.generation = before.library, before.generation
	default:
		d.library, d.generation = before.library, generation{before.number + 1, time.Now()}
	}
	d.forms = sync.OnceValue(func() map[string][]document { return d.documents(o) })
	return d
}

// Library returns what these documents share with those before and after them.
func (d *Documents) Library() *Library { return d.library }

// documents returns the forms of all documents, by path.
func (d *Documents) documents(o Options) map[string][]document {
	forms := map[string][]document{}
	addGroups(o, forms)
	d.addOpenAPI(o, forms)
	forms["/version"] = []document{newDocument(mediaJSON, func() ([]byte, error) { return json.MarshalIndent(o.Version, "", "  ") })}
	forms["/"] = []document{newJSON(func() (any, error) {
		paths := slices.Collect(maps.Keys(forms))
		paths = slices.DeleteFunc(paths, func(p string) bool { return p == "/" || strings.HasPrefix(p, "/openapi/v3/") })
		paths = append(paths, o.OtherPaths...)
		slices.Sort(paths)
		return metav1.RootPaths{Paths: paths}, nil
	})}
	return forms
}

// builder returns the builder of OpenAPI documents.
func (o Options) builder() *openapi.Builder {
	return &openapi.Builder{Catalogue: o.Catalogue, Vocabulary: o.Vocabulary, Release: o.Release, Version: o.Version.GitVersion, CBOR: o.CBOR}
}

// Version returns the document of /version for a release.
func Version(r release.Release) version.Info {
	built := build.Current()
	info := version.Info{
		Major: "1", Minor: minor(r), GitVersion: "v" + r.Patch() + "+portico", GitTreeState: "clean",
		GitCommit: built.Commit, BuildDate: built.Date,
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

// described returns the forms of a document about groups and types.
func (o Options) described(value func() message) []document {
	forms := newNegotiated(o.Vocabulary.Protobuf, value)
	if o.CBOR {
		forms = append(forms, newCBOR(value))
	}
	return forms
}

func (o Options) address() string {
	if o.Address == nil {
		return ""
	}
	return o.Address()
}

// addGroups adds the documents about groups, versions and resource types. Those of /api
// and /apis also have aggregated forms.
func addGroups(o Options, forms map[string][]document) {
	groups := merged(o.Catalogue, o.Extensions)
	var core apiGroup
	if i := slices.IndexFunc(groups, func(g apiGroup) bool { return g.name == "" }); i >= 0 {
		core = groups[i]
	}
	named := slices.DeleteFunc(slices.Clone(groups), func(g apiGroup) bool { return g.name == "" })
	versions := o.described(func() message { return coreVersions(core, o.address()) })
	forms["/api"] = append(versions, o.aggregated([]apiGroup{core})...)
	list := o.described(func() message { return groupList(groups) })
	forms["/apis"] = append(list, o.aggregated(named)...)
	for _, g := range groups {
		root := "/api"
		if g.name != "" {
			root = "/apis/" + g.name
			forms[root] = o.described(func() message {
				described := group(g)
				described.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return &described
			})
		}
		for _, v := range g.versions {
			if v.extension != nil {
				continue // serves its document itself
			}
			forms[root+"/"+v.name] = o.described(func() message {
				return resourceList(v.types[0].APIVersion(), v.types, o.Release)
			})
		}
	}
}

// Serve writes the document at the request's path in the negotiated form: NotFound
// (404) if there is none, MethodNotAllowed (405) for methods other than GET and HEAD,
// NotAcceptable (406) if no form matches.
func (d *Documents) Serve(w http.ResponseWriter, r *http.Request) error {
	forms, ok := d.forms()[clean(r.URL.Path)]
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
	if _, known := d.forms()["/apis/"+parts[min(2, len(parts)-1)]]; !known && parts[1] != "api" {
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
