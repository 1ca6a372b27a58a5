package openapi

import (
	"crypto/sha256"
	"iter"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/vocabulary"
)

// Builder builds documents.
type Builder struct {
	Catalogue  *catalogue.Catalogue
	Vocabulary vocabulary.Vocabulary
	Release    release.Release
	// Version is the version that documents show.
	Version string
	// CBOR is set if objects are also served in that encoding.
	CBOR bool
}

// Part is what one document of version 3 describes.
type Part struct {
	group, version string // empty if it describes no group version
	types          []*catalogue.Type
	describe       func(*document)
}

// Custom reports whether the part describes custom types, and whether it describes no others.
func (p Part) Custom() (some, only bool) {
	n := 0
	for _, t := range p.types {
		if t.Custom {
			n++
		}
	}
	return n > 0, n > 0 && n == len(p.types)
}

// Hash returns a hash of what the definitions of the custom types say, which is the same in every front door.
// A document about these types alone is the same if the hash is, and the program.
func (p Part) Hash() string {
	all := sha256.New()
	for _, t := range p.types {
		all.Write(t.Origin[:])
	}
	return string(all.Sum(nil))
}

// OfCustom returns the part without built-in types.
func (p Part) OfCustom() Part {
	types := slices.DeleteFunc(slices.Clone(p.types), func(t *catalogue.Type) bool { return !t.Custom })
	return Part{p.group, p.version, types, func(d *document) { d.groupVersion(types) }}
}

// Parts returns all parts, by the paths of their documents below /openapi/v3.
func (b *Builder) Parts() map[string]Part {
	parts := map[string]Part{}
	for path, root := range roots {
		parts[path] = Part{describe: func(d *document) { d.discovery("/"+path+"/", root) }}
	}
	for _, g := range b.Catalogue.Groups() {
		var builtIn bool
		for _, v := range g.Versions {
			t := v.Types[0]
			builtIn = builtIn || !t.Custom
			parts[strings.TrimPrefix(root(t), "/")] = Part{t.Group, t.Version, v.Types, func(d *document) { d.groupVersion(v.Types) }}
		}
		if builtIn && g.Name != "" {
			page := b.groupPage(g.Name)
			parts["apis/"+g.Name] = Part{describe: func(d *document) { d.discovery("/apis/"+g.Name+"/", page) }}
		}
	}
	return parts
}

// groupVersion describes the types of a group version. The document about the resources of
// custom types is not described, as the reference server does not either.
func (d *document) groupVersion(types []*catalogue.Type) {
	if t := types[0]; !t.Custom {
		d.discovery(root(t)+"/", d.versionPage(t))
	}
	for _, t := range types {
		(&describer{document: d, t: t}).describe()
	}
}

// V2 returns a document of version 2 about all given parts.
func (b *Builder) V2(parts ...Part) *spec.Swagger { return b.V2Without(nil, parts...) }

// V2Without is V2 without the definitions that another document has, with all to which they refer; nil for none.
func (b *Builder) V2Without(elsewhere map[string]bool, parts ...Part) *spec.Swagger {
	d := b.second()
	d.elsewhere = elsewhere
	for _, part := range parts {
		part.describe(d)
	}
	return b.withParameters(reduce.Document(d.swagger()))
}

// withParameters returns a document of version 2 whose operations share parameters, if the release has that.
func (b *Builder) withParameters(whole *spec.Swagger) *spec.Swagger {
	if !b.Release.Before(sharing) {
		whole.Parameters = share(whole.Paths.Paths)
	}
	return whole
}

// Named returns a document of version 2 with some of the definitions that exist, and all to which they refer.
func (b *Builder) Named(definitions iter.Seq[string]) *spec.Swagger {
	d := b.second()
	for name := range definitions {
		d.add(name)
	}
	return reduce.Document(d.swagger())
}

// second returns an empty document of version 2.
func (b *Builder) second() *document {
	return &document{Builder: b, paths: map[string]spec.PathItem{}, found: spec.Definitions{}, withoutDefaults: true}
}

// V3 returns the document of a part.
func (b *Builder) V3(part Part) *spec3.OpenAPI {
	d := &document{Builder: b, paths: map[string]spec.PathItem{}, found: spec.Definitions{}, group: part.group, version: part.version}
	part.describe(d)
	return thirdVersion(d.swagger(), b.Vocabulary)
}

// Releases whose documents are the first ones with a property.
var (
	sharing, _   = release.Of("1.27") // parameters of version 2 that operations share
	emulation, _ = release.Of("1.33") // the emulated version instead of the server's own
)

// document is a document while it is built.
type document struct {
	*Builder
	paths map[string]spec.PathItem
	found spec.Definitions
	// group and version are those of the kinds that schemas name, beside the core v1; empty
	// for all.
	group, version string
	elsewhere      map[string]bool // definitions that are in another document
	// standIns are the names of definitions that do not exist, of kinds that do not exist either.
	standIns map[kindRef]string
	// withoutDefaults removes the defaults of fields, which documents of version 2 lack.
	withoutDefaults bool
}

func (d *document) swagger() *spec.Swagger {
	version := d.Version
	if !d.Release.Before(emulation) {
		version = d.Release.String()
	}
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0",
		Info: &spec.Info{InfoProps: spec.InfoProps{
			Title: "Portico", Version: version, Description: "Resources of a container cluster.",
		}},
		Paths:       &spec.Paths{Paths: d.paths},
		Definitions: d.found,
		SecurityDefinitions: spec.SecurityDefinitions{"BearerToken": &spec.SecurityScheme{SecuritySchemeProps: spec.SecuritySchemeProps{
			Type: "apiKey", Name: "authorization", In: "header", Description: "Bearer token",
		}}},
		Security: []map[string][]string{{"BearerToken": {}}},
	}}
}
