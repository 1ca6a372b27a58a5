package e2e

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/portico-platform/portico/test/e2e/cluster"
)

// cleanUpPeriod is how long a token is unused before it is invalid, apart from the day itself.
const cleanUpPeriod = time.Second

// warned counts the warnings of responses.
type warned struct{ atomic.Int64 }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warned) HandleWarningHeaderWithContext(context.Context, int, string, string) { w.Add(1) }

// recordsUses uses the token in a Secret: the date is recorded in a label of the Secret, also for a
// TokenReview and for a token that is refused because its Secret is marked as invalid. A Secret
// that the account lists makes warnings.
func recordsUses(t *testing.T, c *cluster.Cluster, namespace string) {
	const lastUsed, invalidSince = "kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"
	client := kubernetes.NewForConfigOrDie(c.Config())
	accounts, secrets := client.CoreV1().ServiceAccounts(namespace), client.CoreV1().Secrets(namespace)
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Create(t.Context(), &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{Name: "robot", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token := ""
	eventually(t, "the Secret has a token", func() bool {
		secret, err := secrets.Get(t.Context(), "robot", metav1.GetOptions{})
		if err == nil {
			token = string(secret.Data[corev1.ServiceAccountTokenKey])
		}
		return token != ""
	})
	label := func(key, value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, key, value)
		if _, err := secrets.Patch(t.Context(), "robot", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	recorded := func() bool {
		secret, err := secrets.Get(t.Context(), "robot", metav1.GetOptions{})
		if err != nil {
			return false
		}
		at, err := time.Parse(time.DateOnly, secret.Labels[lastUsed])
		return err == nil && time.Since(at) < 48*time.Hour
	}
	config := rest.AnonymousClientConfig(c.Config())
	warnings := &warned{}
	config.BearerToken, config.WarningHandlerWithContext = token, warnings
	robot := kubernetes.NewForConfigOrDie(config)
	use := func() error {
		_, err := robot.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}
	if err := use(); err != nil || !recorded() || warnings.Load() > 0 {
		t.Errorf("the first use: %v, recorded %v, %d warnings", err, recorded(), warnings.Load())
	}
	label(lastUsed, "null")
	eventually(t, "the use in a TokenReview is recorded", func() bool {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		_, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && recorded()
	})
	account.Secrets = []corev1.ObjectReference{{Name: "robot"}}
	if _, err := accounts.Update(t.Context(), account, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a use makes a warning", func() bool { return use() == nil && warnings.Load() > 0 })
	label(invalidSince, `"2026-01-02"`)
	eventually(t, "the token is refused", func() bool { return apierrors.IsUnauthorized(use()) })
	label(lastUsed, "null")
	eventually(t, "the attempt is recorded", func() bool { return apierrors.IsUnauthorized(use()) && recorded() })
	label(invalidSince, "null")
	eventually(t, "the token is accepted again", func() bool { return use() == nil })
	cleansUp(t, client, namespace, func() bool { return apierrors.IsUnauthorized(use()) })
}

// cleansUp lets the token of robot be unused for days: it is marked as invalid, and later deleted,
// also from the list of its account. A token that a pod mounts stays.
func cleansUp(t *testing.T, client kubernetes.Interface, namespace string, refused func() bool) {
	const lastUsed, invalidSince = "kubernetes.io/legacy-token-last-used", "kubernetes.io/legacy-token-invalid-since"
	accounts, secrets := client.CoreV1().ServiceAccounts(namespace), client.CoreV1().Secrets(namespace)
	account, err := accounts.Get(t.Context(), "robot", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: "mounted"})
	if _, err := accounts.Update(t.Context(), account, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Create(t.Context(), &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{Name: "mounted", Annotations: map[string]string{corev1.ServiceAccountNameKey: "robot"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mounts"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes:    []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ago := func(days int) string { return time.Now().UTC().AddDate(0, 0, -days).Format(time.DateOnly) }
	patch := func(format string, arguments ...any) []byte { return fmt.Appendf(nil, format, arguments...) }
	if _, err := secrets.Patch(t.Context(), "robot", types.MergePatchType, patch(`{"metadata":{"labels":{%q:%q}}}`, lastUsed, ago(9)), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "kube-apiserver-legacy-service-account-token-tracking", types.MergePatchType,
		patch(`{"data":{"since":%q}}`, ago(30)), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token is marked as invalid", func() bool {
		secret, err := secrets.Get(t.Context(), "robot", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.DateOnly, secret.Labels[invalidSince])
		return err == nil && time.Since(at) < 48*time.Hour
	})
	eventually(t, "it is refused", refused)
	long := patch(`{"metadata":{"labels":{%q:%q,%q:%q}}}`, lastUsed, ago(9), invalidSince, ago(8))
	if _, err := secrets.Patch(t.Context(), "robot", types.MergePatchType, long, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret is deleted", func() bool {
		_, err := secrets.Get(t.Context(), "robot", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	eventually(t, "the account does not list it", func() bool {
		account, err := accounts.Get(t.Context(), "robot", metav1.GetOptions{})
		return err == nil && len(account.Secrets) == 1 && account.Secrets[0].Name == "mounted"
	})
	if secret, err := secrets.Get(t.Context(), "mounted", metav1.GetOptions{}); err != nil || secret.Labels[invalidSince] != "" {
		t.Errorf("the token that a pod mounts: %v, %v", secret, err)
	}
}
