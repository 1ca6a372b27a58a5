package replacing

import (
	_ "embed"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// minimal are the manifests of the kinds of release 1.21, later those that only 1.36 has.
var (
	//go:embed testdata/minimal.yaml
	minimal string
	//go:embed testdata/later.yaml
	later string
)

// manifests returns the objects of a file of manifests, with the names of the cluster.
func manifests(t *testing.T, c *cluster.Cluster, namespace, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	roots, err := json.Marshal(string(c.Config().CAData))
	if err != nil {
		t.Fatal(err)
	}
	request, stub := signingRequest(t)
	file = strings.NewReplacer("<namespace>", namespace, "<request>", request, "<stub>", stub, "<roots>", string(roots)).Replace(file)
	for manifest := range strings.SplitSeq(file, "---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			t.Fatal(err)
		}
		group, version, grouped := strings.Cut(object.GetAPIVersion(), "/")
		if grouped {
			object.SetAPIVersion(c.Vocabulary.Group(group) + "/" + version)
		}
		if ref, ok := object.Object["roleRef"].(map[string]any); ok {
			ref["apiGroup"] = c.Vocabulary.Group(group)
		}
		if object.GetName() == "" {
			object.SetName(namespace + "-" + strings.NewReplacer("/", "-", ".", "-").Replace(object.GetAPIVersion()))
		}
		objects = append(objects, object)
	}
	return objects
}

// nameOf returns the version and kind of an object.
func nameOf(object *unstructured.Unstructured) string {
	return object.GetAPIVersion() + " " + object.GetKind()
}
