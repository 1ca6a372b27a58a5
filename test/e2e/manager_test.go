package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controllerruntime "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// siteFinalizer keeps a site until its reconciler has let go.
const siteFinalizer = "example.com/site"

// siteReconciler makes a ConfigMap and a Deployment of every Site.
type siteReconciler struct{ client client.Client }

// Reconcile implements reconcile.Reconciler.
func (r siteReconciler) Reconcile(ctx context.Context, request controllerruntime.Request) (controllerruntime.Result, error) {
	site := &Site{}
	if err := r.client.Get(ctx, request.NamespacedName, site); err != nil {
		return controllerruntime.Result{}, client.IgnoreNotFound(err)
	}
	if site.DeletionTimestamp != nil {
		controllerutil.RemoveFinalizer(site, siteFinalizer)
		return controllerruntime.Result{}, r.client.Update(ctx, site)
	}
	if controllerutil.AddFinalizer(site, siteFinalizer) {
		return controllerruntime.Result{}, r.client.Update(ctx, site)
	}
	return controllerruntime.Result{}, r.make(ctx, site)
}

// make brings what the site owns, and its status, up to date.
func (r siteReconciler) make(ctx context.Context, site *Site) error {
	text := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.client, text, func() error {
		text.Data = map[string]string{"text": site.Spec.Text}
		return controllerutil.SetControllerReference(site, text, r.client.Scheme())
	}); err != nil {
		return err
	}
	web := deployment(site.Name)
	web.Namespace = site.Namespace
	if _, err := controllerutil.CreateOrUpdate(ctx, r.client, web, func() error {
		web.Spec.Replicas = site.Spec.Replicas
		return controllerutil.SetControllerReference(site, web, r.client.Scheme())
	}); err != nil {
		return err
	}
	if site.Status.Replicas == web.Status.Replicas {
		return nil
	}
	site.Status.Replicas = web.Status.Replicas
	return r.client.Status().Update(ctx, site)
}

// startManager runs a manager with the reconciler until the test ends.
func startManager(t *testing.T, c *cluster.Cluster, namespace string) manager.Manager {
	t.Helper()
	retry := 100 * time.Millisecond
	m, err := controllerruntime.NewManager(c.Config(), manager.Options{
		Scheme: schemeWithSites(t), Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		LeaderElection: true, LeaderElectionID: "sites", LeaderElectionNamespace: namespace,
		LeaderElectionReleaseOnCancel: true, RetryPeriod: &retry,
		Controller: config.Controller{SkipNameValidation: new(true)}, // managers of both releases run in this process
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllerruntime.NewControllerManagedBy(m).For(&Site{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		Complete(siteReconciler{m.GetClient()}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	})
	return m
}

// manages follows a site through its life under a reconciler.
func manages(t *testing.T, c *cluster.Cluster, direct client.Client) {
	ctx, namespace := t.Context(), newNamespace(t, c.Client(t))
	m := startManager(t, c, namespace)
	key, replicas := client.ObjectKey{Namespace: namespace, Name: "home"}, int32(2)
	site := &Site{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: key.Name}, Spec: SiteSpec{Replicas: &replicas, Text: "hello"}}
	if err := direct.Create(ctx, site); err != nil {
		t.Fatal(err)
	}
	text, web := &corev1.ConfigMap{}, &appsv1.Deployment{}
	eventually(t, "the owned objects are made", func() bool {
		return direct.Get(ctx, key, text) == nil && direct.Get(ctx, key, web) == nil
	})
	if owner := metav1.GetControllerOf(web); owner == nil || owner.UID != site.UID || text.Data["text"] != "hello" {
		t.Errorf("the owner is %v, the text %q", owner, text.Data["text"])
	}
	if err := direct.Delete(ctx, text); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a deleted object is made again", func() bool {
		again := &corev1.ConfigMap{}
		return direct.Get(ctx, key, again) == nil && again.UID != text.UID
	})
	if err := direct.Patch(ctx, site, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the replicas arrive", func() bool { return direct.Get(ctx, key, web) == nil && *web.Spec.Replicas == 5 })
	if err := direct.Status().Patch(ctx, web, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"replicas":5}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status comes back, in the manager's cache too", func() bool {
		err, cached := direct.Get(ctx, key, site), &Site{}
		return err == nil && site.Status.Replicas == 5 && m.GetClient().Get(ctx, key, cached) == nil && cached.Status.Replicas == 5
	})
	if err := direct.Delete(ctx, site); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the finalizer is taken away", func() bool { return apierrors.IsNotFound(direct.Get(ctx, key, site)) })
	if err := m.GetAPIReader().Get(ctx, key, site); !apierrors.IsNotFound(err) {
		t.Errorf("the site after its end: %v", err)
	}
}
