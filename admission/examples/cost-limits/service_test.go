package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/admission/sdk/sdktest"
)

// configured returns the service with a budget of 10 and one unit of money for a core.
func configured(t *testing.T, client kubernetes.Interface) (sdk.Service, *limits) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "budgets.yaml")
	if err := os.WriteFile(file, []byte("prices: {cpu: 1}\nbudget: 10"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &limits{file: file, ledger: newLedger(time.Now), client: func() (kubernetes.Interface, error) { return client, nil }}
	return l.service(), l
}

// synced returns the started service once it is ready.
func synced(t *testing.T, client kubernetes.Interface) sdk.Service {
	t.Helper()
	s, _ := configured(t, client)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "ready", func() bool { return s.Ready() == nil })
	s.Start = nil
	return s
}

// until polls for a condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticks := time.NewTicker(5 * time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(20 * time.Second); !condition(); <-ticks.C {
		if time.Now().After(deadline) {
			t.Fatalf("not %s in time", what)
		}
	}
}

func podOf(name, cores string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"team","name":%q},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":%q}}}]}}`, name, cores)
}

func object(t *testing.T, name, cores string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := json.Unmarshal([]byte(podOf(name, cores)), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestContract(t *testing.T) {
	sdktest.Contract(t, func(t *testing.T) sdk.Service { return synced(t, fake.NewClientset()) }, sdktest.Example{
		Admitted: []sdk.Request{sdktest.Create(podOf("a", "2")), sdktest.Create(podOf("b", "8")), sdktest.Delete(podOf("c", "1"))},
		Refused:  []sdk.Request{sdktest.Create(podOf("d", "11")), sdktest.Create(podOf("e", "1e18"))},
	})
}

// TestTheStoredPodsCount: the service counts pods from before its start, and follows
// creations and deletions.
func TestTheStoredPodsCount(t *testing.T) {
	client := fake.NewClientset(object(t, "a", "8"))
	caller := sdktest.Start(t, synced(t, client))
	refused := sdktest.Review(t.Context(), caller, sdktest.Create(podOf("b", "3")))
	if refused.Err == nil || refused.Err.Code != 403 || refused.Err.Message != `pods "b" is forbidden: it costs 3.0000 an hour; of the budget of 10.0000, 2.0000 is left` || refused.Audit["cost"] != "3.0000" {
		t.Fatalf("%+v", refused)
	}
	if err := client.CoreV1().Pods("team").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "admitted", func() bool {
		return sdktest.Review(t.Context(), caller, sdktest.DryRun(sdktest.Create(podOf("b", "3")))).Err == nil
	})
	if _, err := client.CoreV1().Pods("team").Create(t.Context(), object(t, "c", "9"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "refused", func() bool {
		return sdktest.Review(t.Context(), caller, sdktest.DryRun(sdktest.Create(podOf("b", "3")))).Err != nil
	})
}

// TestBeforeItIsSynced: as long as it does not know the stored pods, the service is not ready
// and decides nothing.
func TestBeforeItIsSynced(t *testing.T) {
	client := fake.NewClientset(object(t, "a", "8"))
	list := make(chan struct{})
	client.PrependReactor("list", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		<-list
		return false, nil, nil
	})
	s, _ := configured(t, client)
	caller := sdktest.Start(t, s)
	for range 3 {
		got := sdktest.Review(t.Context(), caller, sdktest.Create(podOf("b", "1")))
		if got.Err == nil || got.Err.Code != 503 || !strings.Contains(got.Err.Message, "the pods are not yet known") {
			t.Fatalf("%+v", got.Err)
		}
	}
	close(list)
	until(t, "ready", func() bool { return s.Ready() == nil })
	if got := sdktest.Review(t.Context(), caller, sdktest.Create(podOf("b", "3"))); got.Err == nil || got.Err.Code != 403 {
		t.Errorf("%+v", got.Err)
	}
}

// TestConcurrentReviews: many creates at once over gRPC. Those beyond the budget may be tried
// again, because the others are not stored yet.
func TestConcurrentReviews(t *testing.T) {
	caller := sdktest.Serve(t, synced(t, fake.NewClientset()))
	const creates = 40
	results := make(chan sdktest.Result, creates)
	for i := range creates {
		go func() {
			results <- sdktest.Review(context.Background(), caller, sdktest.Create(podOf(fmt.Sprint("p", i), "1")))
		}()
	}
	admitted := 0
	for range creates {
		switch r := <-results; {
		case r.Err == nil:
			admitted++
		case r.Err.Code != 429 || r.Err.Details.RetryAfterSeconds != retryAfter:
			t.Errorf("%+v", r.Err)
		}
	}
	if admitted != 10 {
		t.Errorf("admitted %d, want 10", admitted)
	}
}

func TestFailedStarts(t *testing.T) {
	s, l := configured(t, nil)
	l.client = func() (kubernetes.Interface, error) { return nil, errors.New("no API") }
	if err := s.Start(t.Context()); err == nil || err.Error() != "no API" {
		t.Error(err)
	}
	l.kubeconfig, l.client = "/nothing", l.connect
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Error(err)
	}
	l.file = "/nothing"
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "--budgets") {
		t.Error(err)
	}
	if content, err := os.ReadFile("budgets.yaml"); err != nil {
		t.Error(err)
	} else if c, err := parseConfig([][]byte{content}); err != nil || c.Budget == nil {
		t.Errorf("the file of the example: %+v, %v", c, err)
	}
}
