package replacing

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/applyconfigurations"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

//go:embed testdata/additions.yaml
var additions string

// untyped are the kinds that have no typed apply configuration.
var untyped = map[string]bool{"APIService": true, "AdmissionService": true, "Revocation": true, "IssuedCertificate": true}

// Applied applies the typed configuration of every kind that is served, as two managers.
// Every kind has to be among the manifests. The cluster has the names of Kubernetes.
func Applied(t *testing.T, c *cluster.Cluster) {
	namespace := newNamespace(t, c)
	served, made := replaceable(t, c, namespace), map[string]bool{}
	var added map[string]map[string]any
	if err := yaml.Unmarshal([]byte(additions), &added); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{later, minimal} { // quotas are last
		for _, object := range manifests(t, c, namespace, file) {
			name, kind := nameOf(object), object.GetKind()
			path, ok := served[name]
			if made[name] = true; !ok && file == later {
				t.Errorf("%s is not served", name)
			}
			if path.namespaced {
				object.SetNamespace(namespace)
			}
			if ok && !untyped[kind] {
				t.Run(name, func(t *testing.T) { newApplication(t, c, path, object).run(t, added[kind]) })
			}
		}
	}
	for name := range served {
		if !made[name] {
			t.Errorf("there is no minimal manifest of %s", name)
		}
	}
}

// application is one object that two managers apply.
type application struct {
	cluster *cluster.Cluster
	path    served
	object  *unstructured.Unstructured // as the first manager applies it
	extract extractor
}

// newApplication returns the application of a manifest in the form of its typed
// configuration, which must have all fields of the manifest.
func newApplication(t *testing.T, c *cluster.Cluster, path served, manifest *unstructured.Unstructured) *application {
	t.Helper()
	if text, ok := manifest.Object["stringData"]; ok { // is stored as data
		manifest.Object["data"] = map[string]any{"key": []byte(text.(map[string]any)["key"].(string))}
		delete(manifest.Object, "stringData")
	}
	manifest.SetLabels(map[string]string{"owner": "first"})
	manifest.SetFinalizers([]string{"example.com/first"})
	kind := schema.FromAPIVersionAndKind(manifest.GetAPIVersion(), manifest.GetKind())
	config := applyconfigurations.ForKind(kind)
	if kind.Group == c.Vocabulary.Group("apiextensions.") {
		config = apiextensions.ForKind(kind)
	}
	if config == nil {
		t.Fatalf("no typed configuration of %s", kind)
	}
	given, err := json.Marshal(manifest.Object)
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewDecoder(bytes.NewReader(given))
	strict.DisallowUnknownFields()
	if err := strict.Decode(config); err != nil {
		t.Fatal(err)
	}
	name := kind.Version + " " + kind.Kind
	if kind.Group != "" {
		name = c.Vocabulary.ShortGroup(kind.Group) + "/" + name
	}
	extract := extractors[name]
	if extract == nil {
		t.Fatalf("no function that extracts a %s", kind)
	}
	return &application{c, path, &unstructured.Unstructured{Object: fieldsOf(t, config)}, extract}
}

// run applies the object as the first manager, and additions to it as the second one.
func (a *application) run(t *testing.T, added map[string]any) {
	created := a.apply(t, "first", a.object, http.StatusCreated)
	mine := a.extracted(t, created, "first")
	owned := maps.Clone(a.object.Object)
	if a.object.GetKind() == "CertificateSigningRequest" {
		delete(owned, "spec") // of which nobody is the manager since 1.22
	}
	if missing := missing("", owned, mine.Object); missing != "" {
		t.Errorf("extracted: %s", missing)
	}
	again := a.apply(t, "first", mine, http.StatusOK)
	if before, after := entryOf(created, "first"), entryOf(again, "first"); !reflect.DeepEqual(before, after) {
		t.Errorf("what is extracted changes the object: %v, before %v", after, before)
	}

	other := a.bare()
	other.SetLabels(map[string]string{"owner": "second"})
	refused := a.apply(t, "second", other, http.StatusConflict)
	if text := fmt.Sprint(refused.Object); !strings.Contains(text, ".metadata.labels.owner") || !strings.Contains(text, `conflict with "first"`) {
		t.Errorf("the conflict: %s", text)
	}

	other = a.bare()
	for name, value := range added {
		other.Object[name] = value
	}
	other.SetFinalizers([]string{"example.com/second"})
	shared := a.apply(t, "second", other, http.StatusOK)
	if missing := missing("", other.Object, a.extracted(t, shared, "second").Object); missing != "" {
		t.Errorf("extracted for the second manager: %s", missing)
	}
	a.keeps(t, shared, mine)
	left := a.apply(t, "second", a.bare(), http.StatusOK)
	a.keeps(t, left, mine)
	if slices.Contains(left.GetFinalizers(), "example.com/second") {
		t.Errorf("finalizers after the second manager has none: %v", left.GetFinalizers())
	}
	a.apply(t, "third", mine, http.StatusOK)
	a.remove(t, mine)
}

// keeps fails unless the first manager still has the fields that it had, and they their
// values.
func (a *application) keeps(t *testing.T, answer, mine *unstructured.Unstructured) {
	t.Helper()
	if now := a.extracted(t, answer, "first"); !reflect.DeepEqual(now.Object, mine.Object) {
		t.Errorf("the first manager has %v, had %v", now.Object, mine.Object)
	}
}

// remove removes the finalizer, which two managers own, and an object that is in no
// namespace.
func (a *application) remove(t *testing.T, mine *unstructured.Unstructured) {
	t.Helper()
	mine.SetFinalizers(nil)
	a.apply(t, "first", mine, http.StatusOK)
	if left := a.apply(t, "third", mine, http.StatusOK); slices.Contains(left.GetFinalizers(), "example.com/first") {
		t.Errorf("finalizers that no manager has: %v", left.GetFinalizers())
	}
	if !a.path.namespaced {
		a.cluster.Ask(t, cluster.Request{Method: http.MethodDelete, Path: a.path.path + "/" + a.object.GetName()})
	}
}

// bare returns an object with nothing but its identity.
func (a *application) bare() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(a.object.GetAPIVersion())
	o.SetKind(a.object.GetKind())
	o.SetName(a.object.GetName())
	o.SetNamespace(a.object.GetNamespace())
	return o
}

// apply applies an object as a manager.
func (a *application) apply(t *testing.T, manager string, object *unstructured.Unstructured, code int) *unstructured.Unstructured {
	t.Helper()
	body, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	answer := a.cluster.Ask(t, cluster.Request{Method: http.MethodPatch, Type: "application/apply-patch+yaml", Body: string(body),
		Path: a.path.path + "/" + a.object.GetName() + "?fieldValidation=Strict&fieldManager=" + manager})
	if answer.Code != code {
		t.Fatalf("%s applies %s\ngot %d, want %d: %.700s", manager, body, answer.Code, code, answer.Body)
	}
	result := &unstructured.Unstructured{}
	answer.Decode(t, &result.Object)
	return result
}

// extracted returns the typed configuration of a manager, extracted from an object.
func (a *application) extracted(t *testing.T, object *unstructured.Unstructured, manager string) *unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	config, err := a.extract(raw, manager)
	if err != nil {
		t.Fatalf("extracting from %.700s: %v", raw, err)
	}
	return &unstructured.Unstructured{Object: fieldsOf(t, config)}
}

// fieldsOf returns a typed configuration as a tree.
func fieldsOf(t *testing.T, config any) (fields map[string]any) {
	t.Helper()
	raw, err := json.Marshal(config)
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fields
}

// entryOf returns the entry of a manager in managedFields.
func entryOf(object *unstructured.Unstructured, manager string) metav1.ManagedFieldsEntry {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == manager && entry.Subresource == "" {
			return entry
		}
	}
	return metav1.ManagedFieldsEntry{}
}

// missing returns the first value of want that is not in got; "" if there is none.
func missing(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		for name, value := range want {
			if found := missing(at+"."+name, value, got[name]); found != "" {
				return found
			}
		}
		if !ok {
			return at + " is missing"
		}
		return ""
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			return fmt.Sprintf("%s has %d items, want %d", at, len(got), len(want))
		}
		for i, value := range want {
			if found := missing(fmt.Sprintf("%s[%d]", at, i), value, got[i]); found != "" {
				return found
			}
		}
		return ""
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}
