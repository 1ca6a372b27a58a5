package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/services/kit/run"
)

// maxFile bounds a file with an object.
const maxFile = 1 << 20

// Texts in the body of an object that each request replaces.
const (
	nameMark, sentMark, groupMark = "portico-load-name", "portico-load-sent", "portico-load-group"
	// sent is the annotation with the time of a change. Watchers read it.
	sent = "sent"
)

// kind is a resource to write and read.
type kind struct {
	resource schema.GroupVersionResource
	path     string // of the collection in the namespace
	body     string // of an object, with the marks
}

// builtIn returns an object of a resource that needs no file.
func builtIn(resource string) (*unstructured.Unstructured, error) {
	bodies := map[string]func() []byte{
		"configmaps":  func() []byte { return load.ConfigMap(nameMark) },
		"pods":        func() []byte { return load.Pod(nameMark, 1) },
		"deployments": func() []byte { return load.Deployment(nameMark) },
		"secrets": func() []byte {
			return []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{},"type":"Opaque","stringData":{"note":"` + load.Note + `"}}`)
		},
	}
	body := bodies[resource]
	if body == nil {
		return nil, run.Usagef("--kinds: no object of %q is built in: use configmaps, secrets, pods or deployments, or a file (-f)", resource)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body(), &object.Object); err != nil {
		return nil, err
	}
	switch resource {
	case "pods": // no scheduler takes it, and no node
		unstructured.RemoveNestedField(object.Object, "spec", "nodeName")
		return object, unstructured.SetNestedField(object.Object, "portico-load", "spec", "schedulerName")
	case "deployments":
		return object, unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
	}
	return object, nil
}

// fromFile reads an object.
func fromFile(path string) (*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("--filename: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("--filename: %s has more than %d bytes", path, maxFile)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("--filename: %s: %w", path, err)
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" || object.IsList() {
		return nil, fmt.Errorf("--filename: %s is not one object with apiVersion and kind", path)
	}
	return object, nil
}

// resolve returns the resources of the load.
func (p *plan) resolve(mapper meta.RESTMapper, run string) (all []kind, err error) {
	for _, name := range p.kinds {
		if len(p.files) > 0 {
			break
		}
		object, err := builtIn(name)
		if err != nil {
			return nil, err
		}
		k, err := newKind(mapper, object, p.namespace, run)
		if err != nil {
			return nil, fmt.Errorf("--kinds: %s: %w", name, err)
		}
		all = append(all, k)
	}
	for _, path := range p.files {
		object, err := fromFile(path)
		if err != nil {
			return nil, err
		}
		k, err := newKind(mapper, object, p.namespace, run)
		if err != nil {
			return nil, fmt.Errorf("--filename: %s: %w", path, err)
		}
		all = append(all, k)
	}
	return all, nil
}

// newKind returns the kind of which an object is.
func newKind(mapper meta.RESTMapper, object *unstructured.Unstructured, namespace, run string) (kind, error) {
	gvk := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kind{}, err
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return kind{}, fmt.Errorf("%s are not namespaced, and load works in one namespace only", mapping.Resource.Resource)
	}
	k := kind{resource: mapping.Resource, path: "/apis/" + gvk.Group + "/" + gvk.Version}
	if gvk.Group == "" {
		k.path = "/api/" + gvk.Version
	}
	k.path += "/namespaces/" + namespace + "/" + mapping.Resource.Resource
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[ownLabel], labels[load.GroupLabel], annotations[sent] = run, groupMark, sentMark
	// Nothing else of the metadata is copied, such as finalizers, with which objects would remain.
	object.Object["metadata"] = map[string]any{}
	delete(object.Object, "status")
	object.SetName(nameMark)
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
	body, err := json.Marshal(object.Object)
	k.body = string(body)
	return k, err
}

// object returns the body of an object.
func (k *kind) object(name, at string, group int) []byte {
	return []byte(strings.NewReplacer(nameMark, name, sentMark, at, groupMark, fmt.Sprintf("g%d", group)).Replace(k.body))
}
