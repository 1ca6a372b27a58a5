package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"k8s.io/kube-openapi/pkg/aggregator"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/discovery/reduce"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services/vocabulary"
)

// OpenAPI are the OpenAPI documents of an extension. They are immutable.
type OpenAPI struct {
	v2 *spec.Swagger // nil if there is none
	v3 []byte
}

// ParseOpenAPI checks the documents of an extension: v2 describes all that a server serves,
// of which that of the group version is kept; v3, which may be nil, the group version
// alone. It returns an error for documents that clients could not read.
func ParseOpenAPI(group, version string, v2, v3 []byte) (parsed *OpenAPI, err error) {
	defer func() {
		// The libraries are made for documents of servers that one trusts.
		if p := recover(); p != nil {
			parsed, err = nil, fmt.Errorf("the OpenAPI document cannot be processed: %v", p)
		}
	}()
	parsed = &OpenAPI{}
	if v2 != nil {
		if parsed.v2, err = parseV2(group, version, v2); err != nil {
			return nil, err
		}
	}
	switch {
	case v3 != nil:
		var read spec3.OpenAPI
		if err := json.Unmarshal(v3, &read); err != nil {
			return nil, err
		}
		if read.Version == "" || read.Paths == nil {
			return nil, errors.New("the OpenAPI v3 document has no version or no paths")
		}
		parsed.v3 = v3
	case parsed.v2 != nil:
		if parsed.v3, err = json.Marshal(openapiconv.ConvertV2ToV3(parsed.v2)); err != nil {
			return nil, err
		}
	default:
		return nil, errors.New("there is no OpenAPI document")
	}
	return parsed, nil
}

// parseV2 returns what a document says about a group version.
func parseV2(group, version string, raw []byte) (*spec.Swagger, error) {
	var all spec.Swagger
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	if all.Paths == nil {
		return nil, errors.New("the OpenAPI document has no paths")
	}
	root := "/apis/" + group + "/" + version
	kept := aggregator.FilterSpecByPathsWithoutSideEffects(&all, []string{root + "/"})
	if own, ok := all.Paths.Paths[root]; ok {
		kept.Paths.Paths[root] = own
	}
	kept.Parameters, kept.Responses, kept.SecurityDefinitions, kept.Security = all.Parameters, nil, nil, nil
	for name, definition := range kept.Definitions {
		definition.Extensions = ofGroupVersion(definition.Extensions, group, version)
		kept.Definitions[name] = definition
	}
	kept = reduce.Document(kept)
	again, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	_, err = openapi_v2.ParseDocument(again)
	return kept, err
}

// kindsExtension is the extension that names the kinds of a schema.
var kindsExtension = vocabulary.K8s().Extension + "group-version-kind"

// ofGroupVersion returns extensions that name kinds of the group version only: a server must
// not describe the kinds of others.
func ofGroupVersion(extensions spec.Extensions, group, version string) spec.Extensions {
	kinds, ok := extensions[kindsExtension].([]any)
	if !ok {
		delete(extensions, kindsExtension)
		return extensions
	}
	extensions = maps.Clone(extensions)
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind any) bool {
		k, _ := kind.(map[string]any)
		return k["group"] != group || k["version"] != version
	})
	if extensions[kindsExtension] = kinds; len(kinds) == 0 {
		delete(extensions, kindsExtension)
	}
	return extensions
}

// with adds the documents of extensions to a document. Definitions whose names are taken
// get another one. A document that cannot be added is left out.
func with(document *spec.Swagger, extensions map[string]*OpenAPI) *spec.Swagger {
	if len(extensions) == 0 {
		return document
	}
	for name, definition := range document.Definitions {
		definition.Extensions = maps.Clone(definition.Extensions) // which merging changes
		document.Definitions[name] = definition
	}
	for _, name := range slices.Sorted(maps.Keys(extensions)) {
		if v2 := extensions[name].v2; v2 != nil {
			merge(document, v2)
		}
	}
	return document
}

func merge(into, from *spec.Swagger) {
	defer func() { _ = recover() }() //nolint:errcheck // see ParseOpenAPI
	_ = aggregator.MergeSpecsIgnorePathConflictRenamingDefinitionsAndParameters(into, from)
}

// described is what OpenAPI documents describe.
type described struct {
	catalogue  *catalogue.Catalogue
	extensions map[string]*OpenAPI // by the path of the group version, without its first slash
}

func describedBy(o Options) described {
	d := described{o.Catalogue, map[string]*OpenAPI{}}
	for _, x := range o.Extensions {
		if x.OpenAPI != nil && !o.Catalogue.BuiltInVersion(x.Group, x.Version) {
			d.extensions[strings.Join([]string{"apis", x.Group, x.Version}, "/")] = x.OpenAPI
		}
	}
	return d
}

func (d described) equal(other described) bool {
	return d.catalogue == other.catalogue && maps.Equal(d.extensions, other.extensions)
}
