package worker

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminating is the cause of the error for creating an object in a terminating namespace.
const terminating metav1.CauseType = "NamespaceTerminating"

// IgnoreRace returns nil for errors of a write that lost a race: the object already exists,
// is gone, or its namespace is terminating. It returns ErrLater for a conflict.
func IgnoreRace(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, terminating):
		return nil
	case apierrors.IsConflict(err):
		return ErrLater
	}
	return err
}
