package openapi

import (
	"net/http"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
)

// page is a path that is read and holds no objects: discovery, the release, and the keys of
// service accounts.
type page struct {
	tag, id, text string
	kind          string // of the core v1; empty if the content has none
	schema        string // of the content without a kind, by the end of its name
	media         string // empty for all media types of objects
	takesNothing  bool   // whether no media types of requests are described
}

// roots are the pages that belong to no group, by their paths.
var roots = map[string]page{
	"api":     {tag: "core", id: "getCoreAPIVersions", text: "Returns the versions of the core group.", kind: "APIVersions"},
	"apis":    {tag: "apis", id: "getAPIVersions", text: "Returns the groups and their versions.", kind: "APIGroupList"},
	"version": {tag: "version", id: "getCodeVersion", text: "Returns the version of the server.", schema: "version.Info", media: "application/json"},
	".well-known/openid-configuration": {tag: "WellKnown", id: "getServiceAccountIssuerOpenIDConfiguration",
		text: "Returns the OpenID configuration of the issuer of service account tokens.", media: "application/json", takesNothing: true},
	"openid/v1/jwks": {tag: "openid", id: "getServiceAccountIssuerOpenIDKeyset",
		text: "Returns the public keys that verify service account tokens.", media: "application/jwk-set+json", takesNothing: true},
}

// groupPage returns the page of a group.
func (b *Builder) groupPage(group string) page {
	name := b.groupName(group)
	return page{tag: lower(name), id: "get" + name + "APIGroup", text: "Returns the versions of the group.", kind: "APIGroup"}
}

// versionPage returns the page of the group version of a type.
func (b *Builder) versionPage(t *catalogue.Type) page {
	name := b.groupName(t.Group)
	return page{tag: tag(name, t.Version), id: "get" + name + identifier(t.Version) + "APIResources", text: "Returns the resources of the group version.", kind: "APIResourceList"}
}

// tag returns the tag of the operations of a group version, by the group's name in operation ids.
func tag(group, version string) string { return lower(group) + "_" + lower(identifier(version)) }

// discovery describes a page.
func (d *document) discovery(path string, p page) {
	answer := spec.StringProperty()
	switch {
	case p.kind != "":
		answer = d.meta(p.kind)
	case p.schema != "":
		answer = d.shared(p.schema)
	}
	gives := d.formats()
	if p.media != "" {
		gives = []string{p.media}
	}
	takes := gives
	if p.takesNothing {
		takes = nil
	}
	d.paths[path] = spec.PathItem{PathItemProps: spec.PathItemProps{Get: &spec.Operation{OperationProps: spec.OperationProps{
		ID: p.id, Tags: []string{p.tag}, Description: p.text, Consumes: takes, Produces: gives, Schemes: schemes,
		Responses: responses(answer, http.StatusOK),
	}}}}
}

// groupName is the group's name in operation ids: RbacAuthorization, Core.
func (b *Builder) groupName(group string) string {
	if group == "" {
		return "Core"
	}
	return identifier(b.Vocabulary.ShortGroup(group))
}

// identifier returns a name as part of an operation id, of which clients derive the names of
// functions: without dots and hyphens, and each part begins with a capital.
func identifier(name string) string {
	var all strings.Builder
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '-' }) {
		all.WriteString(capital(part))
	}
	return all.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
func lower(s string) string   { return strings.ToLower(s[:1]) + s[1:] }
