package hook

import (
	"context"
	"encoding/json"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typed "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/portico-platform/portico/internal/plain"
)

// checksumKey is the annotation with the checksum of the files of a StatefulSet. On the object it
// says which files its pods have read; in the pod template it makes the controller replace them,
// one after the other, as kubectl rollout restart does.
const checksumKey = "checksum/identities"

// restarts replaces the pods of a StatefulSet whose files have changed, for servers that do not
// read them again. The files of pods without the annotation are unknown.
type restarts struct {
	name string // empty: there is nothing to restart
	sets typed.StatefulSetInterface
	out  io.Writer
}

// record notes the checksum of the files before they change, unless one is noted. It changes no
// pod: those of a new StatefulSet have these files. A later run that fails between the Secrets
// and the restart is then made good by the next one.
func (r restarts) record(ctx context.Context, checksum string) error {
	set, err := r.get(ctx)
	if err != nil || set == nil || set.Annotations[checksumKey] != "" {
		return err
	}
	return r.annotate(ctx, map[string]any{"metadata": annotations(checksum)})
}

// restart makes the pods restart unless they have the files of this checksum.
func (r restarts) restart(ctx context.Context, checksum string) error {
	set, err := r.get(ctx)
	if err != nil || set == nil || set.Annotations[checksumKey] == checksum {
		return err
	}
	err = r.annotate(ctx, map[string]any{"metadata": annotations(checksum),
		"spec": map[string]any{"template": map[string]any{"metadata": annotations(checksum)}}})
	if err == nil {
		_, err = plain.Fprintf(r.out, "restarts the pods of the StatefulSet %s\n", r.name)
	}
	return err
}

func annotations(checksum string) map[string]any {
	return map[string]any{"annotations": map[string]any{checksumKey: checksum}}
}

// get returns nil if there is no StatefulSet, as before the installation.
func (r restarts) get(ctx context.Context) (*appsv1.StatefulSet, error) {
	if r.name == "" {
		return nil, nil
	}
	set, err := r.sets.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return set, err
}

func (r restarts) annotate(ctx context.Context, patch map[string]any) error {
	content, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = r.sets.Patch(ctx, r.name, types.MergePatchType, content, metav1.PatchOptions{FieldManager: "portico-hook"})
	return err
}
