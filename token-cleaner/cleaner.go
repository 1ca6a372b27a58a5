package tokencleaner

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// cleaner deletes the secrets of expired tokens.
type cleaner struct {
	secrets dynamic.ResourceInterface
	clock   clock.PassiveClock
	log     *slog.Logger
}

// reconcile deletes a secret if it has expired, else it returns the remaining time.
func (c *cleaner) reconcile(ctx context.Context, secret *unstructured.Unstructured) (time.Duration, error) {
	expires, ok := expiration(secret)
	if !ok {
		return 0, nil
	}
	if left := expires.Sub(c.clock.Now()); left > 0 {
		return left, nil
	}
	uid, version := secret.GetUID(), secret.GetResourceVersion()
	// The preconditions keep a token that was renewed since it was read.
	err := c.secrets.Delete(ctx, secret.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil
	}
	if err == nil {
		c.log.Info("deleted an expired token", "secret", secret.GetName())
	}
	return 0, err
}

// expiration returns when a token expires; false if there is no readable time.
func expiration(secret *unstructured.Unstructured) (time.Time, bool) {
	expires, err := time.Parse(time.RFC3339, text(secret, "expiration"))
	return expires, err == nil
}
