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

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/openapi"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
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
	// Before are the documents that these replace, of which those about OpenAPI are used
	// again if nothing has changed for them; nil for none. All other options are the same
	// but Catalogue and Extensions.
	Before *Documents
	// Release is the release that is served.
	Release release.Release
	// Version is the release shown at /version, such as v1.21.14+portico.
	Version version.Info
	// CBOR adds documents in that encoding.
	CBOR bool
	// OtherPaths are served elsewhere and listed at /, such as /healthz.
	OtherPaths []string
}

// Documents holds all published documents, by path.
type Documents struct {
	forms map[string][]document
	// openAPI is what the OpenAPI documents describe.
	openAPI described
	// parts are what the documents of OpenAPI v3 describe, by their paths below /openapi/v3.
	parts map[string]openapi.Part
}

// New prepares the documents. It generates none of them.
func New(o Options) *Documents {
	before := o.Before
	o.Before = nil // the documents hold their options until they are generated, and must not hold all generations
	d := &Documents{forms: map[string][]document{}}
	d.addGroups(o)
	d.openAPI = describedBy(o)
	if before != nil && before.openAPI.equal(d.openAPI) {
		for path, forms := range before.forms {
			if strings.HasPrefix(path, "/openapi/") {
				d.add(path, forms...)
			}
		}
		d.parts = before.parts
	} else {
		d.addOpenAPI(&openapi.Builder{Catalogue: o.Catalogue, Vocabulary: o.Vocabulary, Release: o.Release, Version: o.Version.GitVersion, CBOR: o.CBOR}, d.openAPI.extensions, before)
	}
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

// described returns the forms of a document about groups and types.
func (o Options) described(value func() message) []document {
	forms := newNegotiated(o.Vocabulary.Protobuf, value)
	if o.CBOR {
		forms = append(forms, newCBOR(value))
	}
	return forms
}

// addGroups adds the documents about groups, versions and resource types. Those of /api
// and /apis also have aggregated forms.
func (d *Documents) addGroups(o Options) {
	groups := merged(o.Catalogue, o.Extensions)
	var core apiGroup
	if i := slices.IndexFunc(groups, func(g apiGroup) bool { return g.name == "" }); i >= 0 {
		core = groups[i]
	}
	named := slices.DeleteFunc(slices.Clone(groups), func(g apiGroup) bool { return g.name == "" })
	versions := o.described(func() message { return coreVersions(core) })
	d.add("/api", append(versions, o.aggregated([]apiGroup{core})...)...)
	list := o.described(func() message { return groupList(groups) })
	d.add("/apis", append(list, o.aggregated(named)...)...)
	for _, g := range groups {
		root := "/api"
		if g.name != "" {
			root = "/apis/" + g.name
			d.add(root, o.described(func() message {
				described := group(g)
				described.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return &described
			})...)
		}
		for _, v := range g.versions {
			if v.extension != nil {
				continue // serves its document itself
			}
			d.add(root+"/"+v.name, o.described(func() message {
				return resourceList(v.types[0].APIVersion(), v.types, o.Release)
			})...)
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
