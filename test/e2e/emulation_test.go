package e2e

import (
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/test/e2e/cluster"
)

// TestEmulatedVersions moves stored data from one emulated release to another and back.
func TestEmulatedVersions(t *testing.T) {
	t.Parallel()
	old := []string{"--emulated-version=1.21"}
	later := []string{"--emulated-version=1.36"}
	a := startAllInOne(t, vocabulary.K8s(), old...)
	client := kubernetes.NewForConfigOrDie(a.Config())
	ctx := t.Context()
	pods := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a:1"}}}}
	if _, err := client.BatchV1beta1().CronJobs("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("1.21 serves no batch/v1beta1: %v", err)
	}
	budget := &policyv1beta1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: policyv1beta1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	if _, err := client.PolicyV1beta1().PodDisruptionBudgets("default").Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	level, err := client.FlowcontrolV1beta1().PriorityLevelConfigurations().Get(ctx, "system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shares := level.Spec.Limited.AssuredConcurrencyShares

	a.restart(t, later...)
	client = kubernetes.NewForConfigOrDie(a.Config())
	if code := status(t, a.Cluster, "/apis/policy/v1beta1/poddisruptionbudgets"); code != http.StatusNotFound {
		t.Errorf("1.36 serves policy/v1beta1: %d", code)
	}
	if b, err := client.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "old", metav1.GetOptions{}); err != nil || len(b.Spec.Selector.MatchExpressions) == 0 {
		t.Errorf("the budget of an older version: %+v, %v", b, err)
	}
	if l, err := client.FlowcontrolV1().PriorityLevelConfigurations().Get(ctx, "system", metav1.GetOptions{}); err != nil || *l.Spec.Limited.NominalConcurrencyShares != shares {
		t.Errorf("the level of an older version: %+v, %v", l, err)
	}
	class := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, DriverName: "example.com", Parameters: map[string]string{"a": "b"}}
	if _, err := client.StorageV1().VolumeAttributesClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Spec: batchv1.JobSpec{Template: pods,
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}}}}}}
	if _, err := client.BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	a.restart(t, old...)
	client = kubernetes.NewForConfigOrDie(a.Config())
	eventually(t, "the log names the hidden objects", func() bool {
		return strings.Contains(a.process.log(), "objects are hidden") && strings.Contains(a.process.log(), "volumeattributesclasses.storage.k8s.io")
	})
	if code := status(t, a.Cluster, "/apis/storage.k8s.io/v1/volumeattributesclasses"); code != http.StatusNotFound {
		t.Errorf("1.21 serves VolumeAttributesClasses: %d", code)
	}
	if l, err := client.FlowcontrolV1beta1().PriorityLevelConfigurations().Get(ctx, "system", metav1.GetOptions{}); err != nil || l.Spec.Limited.AssuredConcurrencyShares != shares {
		t.Errorf("the level of a later version: %+v, %v", l, err)
	}
	jobs := client.BatchV1().Jobs("default")
	if _, err := jobs.Patch(ctx, "later", types.MergePatchType, []byte(`{"metadata":{"labels":{"patched":"yes"}}}`), metav1.PatchOptions{FieldValidation: "Strict"}); err != nil {
		t.Errorf("a patch of an object with later fields: %v", err)
	}
	if _, err := jobs.Patch(ctx, "later", types.ApplyPatchType, []byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"later","labels":{"applied":"yes"}}}`),
		metav1.PatchOptions{FieldManager: "test"}); err != nil {
		t.Errorf("an apply to an object with later fields: %v", err)
	}

	a.restart(t, later...)
	client = kubernetes.NewForConfigOrDie(a.Config())
	if j, err := client.BatchV1().Jobs("default").Get(ctx, "later", metav1.GetOptions{}); err != nil || j.Labels["patched"] != "yes" || j.Labels["applied"] != "yes" ||
		j.Spec.PodFailurePolicy == nil || j.Spec.PodFailurePolicy.Rules[0].OnExitCodes.Values[0] != 42 || *j.Spec.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("the later fields: %+v, %v", j, err)
	}
	if c, err := client.StorageV1().VolumeAttributesClasses().Get(ctx, "fast", metav1.GetOptions{}); err != nil || c.Parameters["a"] != "b" {
		t.Errorf("the hidden class: %+v, %v", c, err)
	}
}

// restart stops the process and starts it with other arguments, on the same data.
func (a *allInOne) restart(t *testing.T, args ...string) {
	t.Helper()
	a.process.stop(t)
	a.start(t, args...)
}

// status returns the status code of a GET.
func status(t *testing.T, c *cluster.Cluster, path string) int {
	t.Helper()
	answer, err := c.Do(t.Context(), cluster.Request{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code
}
