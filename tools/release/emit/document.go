//go:build generated

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// writeDocument writes the OpenAPI document of the types: their schemas, and paths with no
// more than the kind and action of each operation.
func writeDocument(file string, definitions map[string]spec.Schema, types []*resource) error {
	raw, err := json.Marshal(map[string]any{"swagger": "2.0", "info": map[string]any{"title": "", "version": ""},
		"paths": map[string]any{}, "definitions": definitions})
	if err != nil {
		return err
	}
	document, err := openapi_v2.ParseDocument(raw)
	if err != nil {
		return err
	}
	slices.SortFunc(document.Definitions.AdditionalProperties, func(a, b *openapi_v2.NamedSchema) int { return strings.Compare(a.Name, b.Name) })
	paths := map[string]*openapi_v2.PathItem{}
	for _, t := range types {
		t.describe(paths)
	}
	document.Paths = &openapi_v2.Paths{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		document.Paths.Path = append(document.Paths.Path, &openapi_v2.NamedPathItem{Name: path, Value: paths[path]})
	}
	content, err := proto.MarshalOptions{Deterministic: true}.Marshal(document)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, compressed.Bytes(), 0o644)
}

// describe adds the paths of a type.
func (r *resource) describe(paths map[string]*openapi_v2.PathItem) {
	root, scope := "/apis/"+r.group+"/"+r.version, ""
	if r.group == "" {
		root = "/api/" + r.version
	}
	if r.namespaced {
		scope = "/namespaces/{namespace}"
	}
	collection := scope + "/" + r.plural
	object := collection + "/{name}"
	add := func(path, method, action string, s subresource) {
		item := paths[root+path]
		if item == nil {
			item = &openapi_v2.PathItem{}
			paths[root+path] = item
		}
		*methodsOf(item)[method] = operation(action, s.group, s.version, s.kind)
	}
	own := subresource{group: r.group, version: r.version, kind: r.kind}
	for _, verb := range r.verbs {
		switch verb {
		case "create":
			add(collection, "post", "post", own)
		case "list":
			add(collection, "get", "list", own)
		case "deletecollection":
			add(collection, "delete", "deletecollection", own)
		case "watch":
			add("/watch"+collection, "get", "watchlist", own)
		case "update":
			add(object, "put", "put", own)
		default:
			add(object, verb, verb, own)
		}
	}
	for name, s := range r.subresources {
		for _, verb := range s.verbs {
			method, action := verb, verb
			switch verb {
			case "create":
				method, action = "post", "post"
			case "update":
				method, action = "put", "put"
			}
			if s.connect {
				action = "connect"
			}
			add(object+"/"+name, method, action, s)
		}
	}
}

// methodsOf returns the operations of a path by method.
func methodsOf(item *openapi_v2.PathItem) map[string]**openapi_v2.Operation {
	return map[string]**openapi_v2.Operation{"get": &item.Get, "post": &item.Post, "put": &item.Put, "patch": &item.Patch, "delete": &item.Delete}
}

func operation(action, group, version, kind string) *openapi_v2.Operation {
	text := func(yaml string) *openapi_v2.Any { return &openapi_v2.Any{Yaml: yaml} }
	return &openapi_v2.Operation{VendorExtension: []*openapi_v2.NamedAny{
		{Name: "x-kubernetes-action", Value: text(action + "\n")},
		{Name: "x-kubernetes-group-version-kind", Value: text("group: \"" + group + "\"\nkind: " + kind + "\nversion: " + version + "\n")},
	}}
}
