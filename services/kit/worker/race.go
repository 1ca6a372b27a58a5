package worker

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// terminating is the cause that the API gives for taking nothing into a namespace that
// is on its way out.
const terminating metav1.CauseType = "NamespaceTerminating"

// IgnoreRace makes nothing of having been late with a write: others made the object, it is
// gone, or its namespace is going. One that has changed meanwhile is for later.
func IgnoreRace(err error) error {
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, terminating):
		return nil
	case apierrors.IsConflict(err):
		return ErrLater
	}
	return err
}
