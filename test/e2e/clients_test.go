package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	stockdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featuretesting "k8s.io/client-go/features/testing"
	stock "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/pager"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestClients works with the stock Go clients of every kind.
func TestClients(t *testing.T) {
	t.Parallel()
	c := startAllInOne(t, vocabulary.K8s()).Cluster
	for _, watchList := range []bool{true, false} {
		t.Run(fmt.Sprintf("InformersWithWatchList=%v", watchList), func(t *testing.T) {
			featuretesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			for _, kind := range informerKinds() {
				t.Run(kind.name, func(t *testing.T) { informs(t, c, kind, watchList) })
			}
		})
	}
	for name, body := range map[string]func(t *testing.T, c *cluster.Cluster){
		"TypedProtobuf":   func(t *testing.T, c *cluster.Cluster) { typed(t, c, protobuf(c)) },
		"TypedExtensions": extendsByProtobuf,
		"TypedJSON":       func(t *testing.T, c *cluster.Cluster) { typed(t, c, c.Config()) },
		"Pager":           pages,
		"LeaderElection":  leaders,
		"RESTMapper":      mapper,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body(t, c)
		})
	}
}

// protobuf returns the configuration of clients that use Protobuf.
func protobuf(c *cluster.Cluster) *rest.Config {
	config := c.Config()
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// informerKind is a way to make an informer of the ConfigMaps of a namespace.
type informerKind struct {
	name   string
	config func(c *cluster.Cluster) *rest.Config
	make   func(config *rest.Config, namespace string, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer
}

func informerKinds() []informerKind {
	type tweak = func(*metav1.ListOptions)
	typed := func(config *rest.Config, namespace string, tweak tweak) cache.SharedIndexInformer {
		factory := stock.NewSharedInformerFactoryWithOptions(kubernetes.NewForConfigOrDie(config), 0, stock.WithNamespace(namespace), stock.WithTweakListOptions(tweak))
		return factory.Core().V1().ConfigMaps().Informer()
	}
	return []informerKind{
		{"Typed", (*cluster.Cluster).Config, typed},
		{"TypedProtobuf", protobuf, typed},
		{"Dynamic", (*cluster.Cluster).Config, func(config *rest.Config, namespace string, tweak tweak) cache.SharedIndexInformer {
			return dynamicinformer.NewFilteredDynamicInformer(dynamic.NewForConfigOrDie(config), configMaps(), namespace, 0, cache.Indexers{}, tweak).Informer()
		}},
		{"Metadata", (*cluster.Cluster).Config, func(config *rest.Config, namespace string, tweak tweak) cache.SharedIndexInformer {
			client := metadata.NewForConfigOrDie(metadata.ConfigFor(config))
			return metadatainformer.NewFilteredMetadataInformer(client, configMaps(), namespace, 0, cache.Indexers{}, tweak).Informer()
		}},
	}
}

// informs follows objects that enter, change in and leave an informer's selection.
func informs(t *testing.T, c *cluster.Cluster, kind informerKind, watchList bool) {
	client := c.Client(t)
	namespace := newNamespace(t, client)
	in := client.Resource(configMaps()).Namespace(namespace)
	create := func(name, tier string) {
		t.Helper()
		o := configMap(name, "1")
		o.SetLabels(map[string]string{"tier": tier})
		if _, err := in.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch := func(name, body string) {
		t.Helper()
		if _, err := in.Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("before", "front")
	create("aside", "back")
	var asked requests
	informer := kind.make(asked.count(kind.config(c)), namespace, func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" })
	seen := make(chan string, 100)
	tell := func(what string) func(o any) {
		return func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if object, err := meta.Accessor(o); err == nil {
				seen <- what + " " + object.GetName()
			}
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell("add"), UpdateFunc: func(_, o any) { tell("update")(o) }, DeleteFunc: tell("delete"),
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() { stop(); <-ended }()
	eventually(t, "the informer is filled", informer.HasSynced)
	create("new", "front")
	patch("new", `{"data":{"key":"2"}}`)
	patch("new", `{"metadata":{"labels":{"tier":"back"}}}`)
	patch("aside", `{"metadata":{"labels":{"tier":"front"}}}`)
	if err := in.Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"add before", "add new", "update new", "delete new", "add aside", "delete before"}
	if got := receive(t, seen, len(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if keys := informer.GetStore().ListKeys(); !slices.Equal(keys, []string{namespace + "/aside"}) {
		t.Errorf("the informer holds %q", keys)
	}
	if lists, watchLists := asked.lists.Load(), asked.watchLists.Load(); lists+watchLists != 1 || (watchLists == 1) != watchList {
		t.Errorf("it began with %d lists and %d watches of what is there", lists, watchLists)
	}
}

// receive returns the next n values.
func receive[T any](t *testing.T, from <-chan T, n int) (values []T) {
	t.Helper()
	deadline := time.After(patience)
	for len(values) < n {
		select {
		case value := <-from:
			values = append(values, value)
		case <-deadline:
			t.Fatalf("after %v there are only %v", patience, values)
		}
	}
	return values
}

// typed takes a Deployment through its life with the typed client.
func typed(t *testing.T, c *cluster.Cluster, config *rest.Config) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	in := client.AppsV1().Deployments(newNamespace(t, c.Client(t)))
	made, err := in.Create(ctx, deployment("web"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if made.UID == "" || *made.Spec.Replicas != 2 || made.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || made.Generation != 1 {
		t.Errorf("created: %+v", made)
	}
	w, err := in.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	made.Spec.Template.Spec.Containers[0].Image = "web:2"
	updated, err := in.Update(ctx, made, metav1.UpdateOptions{})
	if err != nil || updated.Generation != 2 {
		t.Fatalf("update: %+v, %v", updated, err)
	}
	if _, err := in.Update(ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("update with a stale version: %v", err)
	}
	updated.Status.Replicas = 2
	if status, err := in.UpdateStatus(ctx, updated, metav1.UpdateOptions{}); err != nil || status.Status.Replicas != 2 || status.Generation != 2 {
		t.Errorf("status: %+v, %v", status, err)
	}
	scale, err := in.GetScale(ctx, "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	scale.Spec.Replicas = 5
	if _, err := in.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	patched, err := in.Patch(ctx, "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}`), metav1.PatchOptions{})
	if err != nil || len(patched.Spec.Template.Spec.Containers) != 2 || *patched.Spec.Replicas != 5 {
		t.Errorf("patch: %+v, %v", patched, err)
	}
	if list, err := in.List(ctx, metav1.ListOptions{LabelSelector: "app=web"}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "web" {
		t.Errorf("list: %+v, %v", list, err)
	}
	if err := in.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, e := range receive(t, w.ResultChan(), 5) {
		want := watch.Modified
		if i == 4 {
			want = watch.Deleted
		}
		if o, ok := e.Object.(*appsv1.Deployment); !ok || e.Type != want || o.Name != "web" {
			t.Errorf("event %d: %s %v", i, e.Type, e.Object)
		}
	}
	if _, err := in.Get(ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
}

func deployment(name string) *appsv1.Deployment {
	replicas, labels := int32(2), map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: name + ":1"}}}}},
	}
}

// pages reads a collection in chunks.
func pages(t *testing.T, c *cluster.Cluster) {
	client := kubernetes.NewForConfigOrDie(protobuf(c))
	in := client.CoreV1().Secrets(newNamespace(t, c.Client(t)))
	ours := map[string]string{"e2e": "pages"} // excludes the token of the namespace's service account
	const count = 23
	for i := range count {
		if _, err := in.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%02d", i), Labels: ours}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	chunks := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return in.List(t.Context(), o) }))
	chunks.PageSize = 5
	names := map[string]bool{}
	if err := chunks.EachListItem(t.Context(), metav1.ListOptions{LabelSelector: labels.FormatLabels(ours)}, func(o runtime.Object) error {
		names[o.(*corev1.Secret).Name] = true
		return nil
	}); err != nil || len(names) != count {
		t.Errorf("%d of %d secrets in chunks: %v", len(names), count, err)
	}
}

// leaders runs leader election with two candidates for a Lease: the second one leads when
// the first one releases it.
func leaders(t *testing.T, c *cluster.Cluster) {
	client := kubernetes.NewForConfigOrDie(protobuf(c))
	namespace := newNamespace(t, c.Client(t))
	leads := make(chan string, 10)
	candidate := func(name string) (resign func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: "office"},
					Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}},
				LeaseDuration: 10 * time.Second, RenewDeadline: 5 * time.Second, RetryPeriod: 50 * time.Millisecond, ReleaseOnCancel: true,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { leads <- name }, OnStoppedLeading: func() {}},
			})
		}()
		return func() { cancel(); <-ended }
	}
	first := candidate("first")
	if got := receive(t, leads, 1); got[0] != "first" {
		t.Errorf("%s leads, want the first", got[0])
	}
	second := candidate("second")
	defer second()
	first()
	if got := receive(t, leads, 1); got[0] != "second" {
		t.Errorf("%s leads, want the second", got[0])
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(t.Context(), "office", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "second" || *lease.Spec.LeaseTransitions < 1 {
		t.Errorf("the lease: %+v, %v", lease, err)
	}
}

// mapper finds resources by kind, plural and short name.
func mapper(t *testing.T, c *cluster.Cluster) {
	client := memory.NewMemCacheClient(stockdiscovery.NewDiscoveryClientForConfigOrDie(c.Config()))
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, func(string) {})
	for kind, want := range map[schema.GroupKind]string{
		{Group: "apps", Kind: "Deployment"}:                       "apps/v1, Resource=deployments",
		{Kind: "Pod"}:                                             "/v1, Resource=pods",
		{Group: "batch", Kind: "CronJob"}:                         "batch/v1, Resource=cronjobs",
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}: "rbac.authorization.k8s.io/v1, Resource=rolebindings",
	} {
		found, err := mapper.RESTMapping(kind)
		if err != nil || found.Resource.String() != want {
			t.Errorf("%s is %v, %v; want %s", kind, found, err, want)
		}
	}
	for short, want := range map[string]string{"deploy": "deployments", "po": "pods", "cm": "configmaps", "crd": "customresourcedefinitions", "sa": "serviceaccounts"} {
		if found, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: short}); err != nil || found.Resource != want {
			t.Errorf("%s is %v, %v; want %s", short, found, err, want)
		}
	}
}
