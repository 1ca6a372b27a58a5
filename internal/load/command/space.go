package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/portico-platform/portico/internal/load"
	"github.com/portico-platform/portico/internal/plain"
)

const (
	// ownLabel is a label of namespaces that load may use, with the values created or allowed,
	// and of the objects of a run, with its name.
	ownLabel = "portico-load"
	created  = "created"
	allowed  = "allowed"
	// cleanTimeout bounds the time to delete everything, and cleanPause is between two attempts.
	cleanTimeout, cleanPause = 5 * time.Minute, 100 * time.Millisecond
)

// space is the namespace of a run and what is in it.
type space struct {
	name, run string
	kinds     []kind
	client    kubernetes.Interface
	objects   metadata.Interface
	uid       *metav1.Preconditions // of a namespace that the run created
}

// claim creates the namespace, or checks that it is there for loads.
func (s *space) claim(ctx context.Context) error {
	namespace, err := s.client.CoreV1().Namespaces().Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s.create(ctx)
	case err != nil:
		return err
	case namespace.Labels[ownLabel] == allowed && namespace.DeletionTimestamp == nil:
		return nil
	case namespace.Labels[ownLabel] == created:
		return fmt.Errorf("--namespace: %s belongs to another run; if it has ended, delete the namespace", s.name)
	}
	return fmt.Errorf("--namespace: %s exists and may have other objects: specify one that does not exist, or set the label %s=%s on it", s.name, ownLabel, allowed)
}

func (s *space) create(ctx context.Context) error {
	namespace, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{ownLabel: created}}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the namespace (or specify one with the label %s=%s): %w", ownLabel, allowed, err)
	}
	s.uid = metav1.NewUIDPreconditions(string(namespace.UID))
	return nil
}

// clean deletes what the run created, also after ctx has ended.
func (s *space) clean(ctx context.Context, errs io.Writer) error {
	if ctx.Err() != nil {
		plain.Fprintf(errs, "interrupted: deleting the objects in namespace %s (Ctrl-C again leaves them there)\n", s.name)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTimeout)
	defer cancel()
	for _, k := range s.kinds {
		if err := s.deleteAll(ctx, k); err != nil {
			return fmt.Errorf("deleting the %s with the label %s=%s in namespace %s: %w", k.resource.Resource, ownLabel, s.run, s.name, err)
		}
	}
	if s.uid == nil {
		return nil
	}
	err := s.client.CoreV1().Namespaces().Delete(ctx, s.name, metav1.DeleteOptions{Preconditions: s.uid})
	for err == nil {
		if err = load.Pause(ctx, cleanPause); err == nil {
			_, err = s.client.CoreV1().Namespaces().Get(ctx, s.name, metav1.GetOptions{})
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("deleting namespace %s: %w", s.name, err)
}

// deleteAll deletes all objects of the run of one kind.
func (s *space) deleteAll(ctx context.Context, k kind) error {
	objects := s.objects.Resource(k.resource).Namespace(s.name)
	now, background := int64(0), metav1.DeletePropagationBackground
	selected := metav1.ListOptions{LabelSelector: ownLabel + "=" + s.run}
	for {
		failed := objects.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}, selected)
		selected.Limit = 1
		left, err := objects.List(ctx, selected)
		selected.Limit = 0
		if err == nil && failed == nil && len(left.Items) == 0 {
			return nil
		}
		if failed = errors.Join(failed, err); apierrors.IsForbidden(failed) || apierrors.IsMethodNotSupported(failed) {
			return failed
		}
		if err := load.Pause(ctx, cleanPause); err != nil {
			return errors.Join(failed, err)
		}
	}
}
