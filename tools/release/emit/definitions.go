//go:build generated

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/portico-platform/portico/tools/release/openapi"
)

const pointer = "#/definitions/"

// readDefinitions returns the schemas of all types that the resources need, in the form of
// OpenAPI 2.
func readDefinitions(types []*resource, optional map[string][]string) (map[string]spec.Schema, error) {
	generated := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(pointer + modelOf(name)) })
	found := map[string]spec.Schema{}
	for name, d := range generated {
		s := d.Schema
		if old, ok := s.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			s = old
		}
		found[modelOf(name)] = s
	}
	for gvk, name := range kindsOf(types, optional) {
		s, ok := found[name]
		if !ok {
			continue
		}
		list, _ := s.Extensions["x-kubernetes-group-version-kind"].([]any)
		s.Extensions = maps.Clone(s.Extensions)
		if s.Extensions == nil {
			s.Extensions = spec.Extensions{}
		}
		list = append(list, map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind})
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		s.Extensions["x-kubernetes-group-version-kind"] = list
		found[name] = s
	}
	return reachable(found), nil
}

// modelOf returns the name of a definition: that of the model, or made from a Go package.
func modelOf(name string) string {
	if i := strings.LastIndex(name, "."); strings.Contains(name, "/") {
		return definitionOf(name[:i], name[i+1:])
	}
	return name
}

// kindsOf returns the definitions of all registered kinds of the resources' versions, but for
// those that optional versions no longer have.
func kindsOf(types []*resource, optional map[string][]string) map[schema.GroupVersionKind]string {
	versions := map[schema.GroupVersion]bool{{Version: "v1"}: true}
	for _, t := range types {
		versions[schema.GroupVersion{Group: t.group, Version: t.version}] = true
	}
	all := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgo.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(all); err != nil {
			panic(err)
		}
	}
	found := map[schema.GroupVersionKind]string{}
	for gvk, t := range all.AllKnownTypes() {
		only, isOptional := optional[t.PkgPath()]
		if isOptional && !slices.Contains(only, strings.TrimSuffix(gvk.Kind, "List")) {
			continue
		}
		if versions[gvk.GroupVersion()] {
			found[gvk] = definitionOf(t.PkgPath(), t.Name())
		}
	}
	return found
}

// unregistered are the definitions of bodies that are no registered kinds.
var unregistered = []string{"io.k8s.apimachinery.pkg.apis.meta.v1.Patch", "io.k8s.apimachinery.pkg.version.Info"}

// reachable returns the definitions of registered kinds and of other bodies, and all that
// they refer to.
func reachable(all map[string]spec.Schema) map[string]spec.Schema {
	found := map[string]spec.Schema{}
	var add func(name string)
	add = func(name string) {
		s, ok := all[name]
		if _, done := found[name]; done || !ok {
			return
		}
		found[name] = s
		references(s, add)
	}
	for name, s := range all {
		if s.Extensions["x-kubernetes-group-version-kind"] != nil {
			add(name)
		}
	}
	for _, name := range unregistered {
		add(name)
	}
	return found
}

// references calls a function for each definition that a schema refers to.
func references(s spec.Schema, visit func(string)) {
	if name, ok := strings.CutPrefix(s.Ref.String(), pointer); ok {
		visit(name)
	}
	for _, p := range s.Properties {
		references(p, visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		references(*s.Items.Schema, visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		references(*s.AdditionalProperties.Schema, visit)
	}
}
