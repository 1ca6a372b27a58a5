package furnish_test

import (
	"log/slog"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/furnish"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/worker"
)

var (
	namespaces = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	configMaps = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	accounts   = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Namespaced: true}
)

func start(t *testing.T, thing furnish.Thing) *apitest.API {
	t.Helper()
	a := apitest.Start(t, namespaces, configMaps, accounts)
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	informer := worker.NewInformer(client.Resource(namespaces.GroupVersionResource), "")
	c, err := furnish.New(thing, client, informer, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var loops sync.WaitGroup
	loops.Go(func() { informer.RunWithContext(t.Context()) })
	loops.Go(func() { _ = c.Run(t.Context()) })
	t.Cleanup(loops.Wait)
	return a
}

func TestServiceAccount(t *testing.T) {
	a := start(t, furnish.ServiceAccount())
	all, in := a.Objects(t, namespaces.GroupVersionResource, ""), a.Objects(t, accounts.GroupVersionResource, "new")
	all.Create(map[string]any{"name": "going", "finalizers": []any{"example.com/hold"}})
	all.Create(map[string]any{"name": "new"})
	apitest.Eventually(t, "the account is there", func() bool { return in.Get("default") != nil })
	first := in.Get("default").GetUID()
	all.Delete("going", metav1.DeletePropagationBackground)
	going := a.Objects(t, accounts.GroupVersionResource, "going")
	apitest.Eventually(t, "the account is there", func() bool { return going.Get("default") != nil })
	going.Delete("default", metav1.DeletePropagationBackground)
	in.Delete("default", metav1.DeletePropagationBackground)
	apitest.Eventually(t, "the account is there again", func() bool {
		account := in.Get("default")
		return account != nil && account.GetUID() != first
	})
	if going.Get("default") != nil {
		t.Error("a namespace that is deleted was furnished")
	}
}

func TestRootCertificate(t *testing.T) {
	names := vocabulary.Platform()
	a := start(t, furnish.RootCertificate(names, []byte("a certificate")))
	in := a.Objects(t, configMaps.GroupVersionResource, "new")
	published := func() bool {
		o := in.Get(names.RootCertificate())
		if o == nil {
			return false
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		return len(data) == 1 && data["ca.crt"] == "a certificate" && o.GetLabels()["mine"] != "lost"
	}
	in.Create(map[string]any{"name": names.RootCertificate(), "labels": map[string]any{"mine": "kept"}},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"ca.crt": "old", "other": "x"}})
	a.Objects(t, namespaces.GroupVersionResource, "").Create(map[string]any{"name": "new"})
	apitest.Eventually(t, "the certificate is right", published)
	if in.Get(names.RootCertificate()).GetLabels()["mine"] != "kept" {
		t.Error("a label of somebody else is lost")
	}
}
