package compose

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// testBackup makes a backup of the running suite and restores it: what was saved is there, and what came later is not.
func (c *containers) testBackup(t *testing.T) {
	maps := c.client.CoreV1().ConfigMaps("default")
	create := func(name string) {
		t.Helper()
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("saved")
	t.Log(c.run(t, "./backup"))
	create("later")
	made, err := os.ReadDir(filepath.Join(c.state, "backups"))
	if err != nil || len(made) != 1 {
		t.Fatalf("%v, %v", made, err)
	}
	t.Log(c.run(t, "./restore", made[0].Name()))
	var saved, later error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		_, saved = maps.Get(ctx, "saved", metav1.GetOptions{})
		_, later = maps.Get(ctx, "later", metav1.GetOptions{})
		return saved == nil && apierrors.IsNotFound(later), nil
	}); err != nil {
		t.Fatalf("what was saved: %v; what came later: %v", saved, later)
	}
	create("new")
}
