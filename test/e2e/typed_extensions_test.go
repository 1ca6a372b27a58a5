package e2e

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// extendsByProtobuf defines a type and registers a version with the stock clients of
// both, whose bodies are Protobuf.
func extendsByProtobuf(t *testing.T, c *cluster.Cluster) {
	definitions := apiextensions.NewForConfigOrDie(protobuf(c)).ApiextensionsV1().CustomResourceDefinitions()
	preserve := true
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "pulleys.protobuf.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "protobuf.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pulleys", Kind: "Pulley"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {Type: "object", XPreserveUnknownFields: &preserve},
						"size": {Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("3")}},
					},
				}}}},
		},
	}
	made, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Labels = map[string]string{"by": "protobuf"}
	eventually(t, "the definition is updated", func() bool {
		live, err := definitions.Get(t.Context(), made.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		live.Labels = made.Labels
		_, err = definitions.Update(t.Context(), live, metav1.UpdateOptions{})
		return err == nil // others write its status meanwhile
	})
	list, err := definitions.List(t.Context(), metav1.ListOptions{LabelSelector: "by=protobuf"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%d definitions, %v", len(list.Items), err)
	}
	root := list.Items[0].Spec.Versions[0].Schema.OpenAPIV3Schema
	if p := root.Properties["spec"].XPreserveUnknownFields; p == nil || !*p || string(root.Properties["size"].Default.Raw) != "3" {
		t.Errorf("the schema came back as %+v", root)
	}
	services := aggregator.NewForConfigOrDie(protobuf(c)).ApiregistrationV1().APIServices()
	service := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1.registered.example.com"},
		Spec: apiregistrationv1.APIServiceSpec{Group: "registered.example.com", Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 10,
			Service: &apiregistrationv1.ServiceReference{Namespace: "default", Name: "none"}}}
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	live, err := services.Get(t.Context(), service.Name, metav1.GetOptions{})
	if err != nil || live.Spec.Service == nil || live.Spec.Service.Name != "none" || *live.Spec.Service.Port != 443 {
		t.Errorf("%+v, %v", live, err)
	}
}
