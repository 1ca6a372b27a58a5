package tokencleaner

import (
	"encoding/base64"
	"log/slog"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	clock "k8s.io/utils/clock/testing"

	"github.com/portico-platform/portico/services/kit/worker"
)

const (
	namespace = "platform-system"
	deadline  = 10 * time.Second
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestExpiredTokensAreDeleted(t *testing.T) {
	secrets := client(
		secret("expired", epoch.Add(-time.Second).Format(time.RFC3339)),
		secret("later", epoch.Add(time.Hour).Format(time.RFC3339)),
		secret("endless", ""),
		secret("unreadable", "tomorrow"),
	)
	now := clock.NewFakeClock(epoch)
	cleaning(t, secrets, now)
	waitGone(t, secrets, "expired")
	wantThere(t, secrets, "later", "endless", "unreadable")

	waitFor(t, func() bool { // the cleaner may have read the clock, but not begun to wait
		now.Step(time.Hour)
		return gone(t, secrets, "later")
	})
	wantThere(t, secrets, "endless", "unreadable")
}

func TestRenewedTokensStay(t *testing.T) {
	secrets := client(secret("a", epoch.Add(time.Minute).Format(time.RFC3339)))
	now := clock.NewFakeClock(epoch)
	informer := cleaning(t, secrets, now)
	waitFor(t, informer.HasSynced)
	renewed := secret("a", epoch.Add(2*time.Hour).Format(time.RFC3339))
	if _, err := secrets.Update(t.Context(), renewed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		object, _, _ := informer.GetStore().GetByKey(namespace + "/a")
		expires, _ := expiration(object.(*unstructured.Unstructured))
		return expires.Equal(epoch.Add(2 * time.Hour))
	})
	now.Step(time.Hour)
	c := &cleaner{secrets: secrets, clock: now, log: slog.New(slog.DiscardHandler)}
	if left, err := c.reconcile(t.Context(), renewed); err != nil || left != time.Hour {
		t.Errorf("left %v, %v", left, err)
	}
	wantThere(t, secrets, "a")
}

// cleaning starts a cleaner, which ends with the test, and returns its informer.
func cleaning(t *testing.T, secrets dynamic.ResourceInterface, now *clock.FakeClock) cache.SharedIndexInformer {
	t.Helper()
	c := &cleaner{secrets: secrets, clock: now, log: slog.New(slog.DiscardHandler)}
	informer := worker.NewInformer(secrets, "")
	work := worker.Controller{Name: cleanerName, Informer: informer, Reconcile: c.reconcile, Clock: now, Log: c.log}
	done := make(chan error, 1)
	go func() { done <- work.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return informer
}

func client(objects ...runtime.Object) dynamic.ResourceInterface {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	kinds := map[schema.GroupVersionResource]string{secrets: "SecretList"}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...).Resource(secrets).Namespace(namespace)
}

func secret(name, expiration string) *unstructured.Unstructured {
	data := map[string]any{}
	if expiration != "" {
		data["expiration"] = base64.StdEncoding.EncodeToString([]byte(expiration))
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name, "namespace": namespace, "uid": name}, "data": data,
	}}
}

func wantThere(t *testing.T, secrets dynamic.ResourceInterface, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func waitGone(t *testing.T, secrets dynamic.ResourceInterface, name string) {
	t.Helper()
	waitFor(t, func() bool { return gone(t, secrets, name) })
}

func gone(t *testing.T, secrets dynamic.ResourceInterface, name string) bool {
	t.Helper()
	_, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(deadline); !condition(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("the condition does not hold within %v", deadline)
		}
	}
}
