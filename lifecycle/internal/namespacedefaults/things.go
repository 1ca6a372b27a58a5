package namespacedefaults

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/portico-platform/portico/services/vocabulary"
)

// ServiceAccount is the default account of pods.
func ServiceAccount() Thing {
	return Thing{
		Controller: "serviceaccount",
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "default"},
		}},
	}
}

// RootCertificate holds the API's CA certificates for pods, as PEM.
func RootCertificate(names vocabulary.Vocabulary, certificates []byte) Thing {
	return Thing{
		Controller: "root-ca-cert-publisher",
		Resource:   schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{
				"name": names.RootCertificate(),
				"annotations": map[string]any{
					names.Qualified("", "description"): "CA certificates of the API. Clients that trust no others cannot be directed to another API.",
				},
			},
			"data": map[string]any{"ca.crt": string(certificates)},
		}},
	}
}
