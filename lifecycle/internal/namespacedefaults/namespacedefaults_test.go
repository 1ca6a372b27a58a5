package namespacedefaults_test

import (
	"log/slog"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/portico-platform/portico/lifecycle/internal/apitest"
	"github.com/portico-platform/portico/lifecycle/internal/namespacedefaults"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/vocabulary"
)

var (
	namespaces = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Kind: "Namespace"}
	configMaps = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}
	accounts   = apitest.Type{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Namespaced: true}
)

// start starts the controller of a thing with the namespaces new and going, the latter
// of which is being deleted.
func start(t *testing.T, thing namespacedefaults.Thing) *apitest.API {
	t.Helper()
	a := apitest.Start(t, namespaces, configMaps, accounts)
	all := a.Objects(t, namespaces.GroupVersionResource, "")
	all.Create(map[string]any{"name": "going", "finalizers": []any{"example.com/hold"}})
	all.Delete("going", metav1.DeletePropagationBackground)
	all.Create(map[string]any{"name": "new"})
	client, err := dynamic.NewForConfig(a.Config())
	if err != nil {
		t.Fatal(err)
	}
	informer := worker.NewInformer(client.Resource(namespaces.GroupVersionResource), "")
	c, err := namespacedefaults.New(thing, client, informer, slog.New(slog.DiscardHandler))
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
	a := start(t, namespacedefaults.ServiceAccount())
	in := a.Objects(t, accounts.GroupVersionResource, "new")
	apitest.Eventually(t, "the account is there", func() bool { return in.Get("default") != nil })
	first := in.Get("default").GetUID()
	in.Delete("default", metav1.DeletePropagationBackground)
	apitest.Eventually(t, "the account is there again", func() bool {
		account := in.Get("default")
		return account != nil && account.GetUID() != first
	})
	if len(a.Objects(t, accounts.GroupVersionResource, "going").List()) > 0 {
		t.Error("a namespace that is deleted got its defaults")
	}
}

func TestRootCertificate(t *testing.T) {
	names := vocabulary.Platform()
	a := start(t, namespacedefaults.RootCertificate(names, []byte("a certificate")))
	in := a.Objects(t, configMaps.GroupVersionResource, "new")
	published := func() bool {
		o := in.Get(names.RootCertificate())
		if o == nil {
			return false
		}
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		return len(data) == 1 && data["ca.crt"] == "a certificate"
	}
	apitest.Eventually(t, "the certificate is there", published)
	in.Change(names.RootCertificate(), func(o *unstructured.Unstructured) {
		o.SetLabels(map[string]string{"mine": "kept"})
		o.Object["data"] = map[string]any{"ca.crt": "old", "other": "x"}
	})
	apitest.Eventually(t, "the certificate is right again", published)
	if in.Get(names.RootCertificate()).GetLabels()["mine"] != "kept" {
		t.Error("a label of somebody else is lost")
	}
}
