// Package controller reconciles CronJobs.
package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "example.org/cronjob/api/v1"
)

// jobOwner is the index of Jobs by the name of the CronJob that owns them.
const jobOwner = ".metadata.controller"

// Reconciler creates the Jobs of CronJobs that are due.
type Reconciler struct {
	client.Client
	Now func() time.Time
}

// SetupWithManager adds the reconciler and its index to a manager.
func (r *Reconciler) SetupWithManager(ctx context.Context, m ctrl.Manager) error {
	owner := func(o client.Object) []string {
		ref := metav1.GetControllerOf(o)
		if ref == nil || ref.Kind != "CronJob" || ref.APIVersion != batch.GroupVersion.String() {
			return nil
		}
		return []string{ref.Name}
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, jobOwner, owner); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).For(&batch.CronJob{}).Owns(&batchv1.Job{}).Named("cronjob").Complete(r)
}

// Reconcile brings the status up to date and creates a Job if one is due.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var job batch.CronJob
	if err := r.Get(ctx, request.NamespacedName, &job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var children batchv1.JobList
	if err := r.List(ctx, &children, client.InNamespace(request.Namespace), client.MatchingFields{jobOwner: request.Name}); err != nil {
		return reconcile.Result{}, err
	}
	job.Status.Active = nil
	for _, child := range children.Items {
		if !finished(&child) {
			job.Status.Active = append(job.Status.Active, corev1.ObjectReference{
				APIVersion: "batch/v1", Kind: "Job", Namespace: child.Namespace, Name: child.Name, UID: child.UID})
		}
	}
	if err := r.Status().Update(ctx, &job); err != nil {
		return reconcile.Result{}, err
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return reconcile.Result{}, nil
	}
	return r.schedule(ctx, &job)
}

// schedule creates the Job that is due, if there is one.
func (r *Reconciler) schedule(ctx context.Context, job *batch.CronJob) (reconcile.Result, error) {
	schedule, err := cron.ParseStandard(job.Spec.Schedule)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	last := job.CreationTimestamp.Time
	if job.Status.LastScheduleTime != nil {
		last = job.Status.LastScheduleTime.Time
	}
	due, now := schedule.Next(last), r.Now()
	if due.After(now) {
		return reconcile.Result{RequeueAfter: due.Sub(now)}, nil
	}
	if len(job.Status.Active) > 0 && job.Spec.ConcurrencyPolicy == batch.ForbidConcurrent {
		return reconcile.Result{RequeueAfter: schedule.Next(now).Sub(now)}, nil
	}
	child := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", job.Name, due.Unix()), Namespace: job.Namespace,
		Labels: job.Spec.JobTemplate.Labels, Annotations: job.Spec.JobTemplate.Annotations,
	}, Spec: *job.Spec.JobTemplate.Spec.DeepCopy()}
	if err := ctrl.SetControllerReference(job, child, r.Scheme()); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.Create(ctx, child); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	job.Status.LastScheduleTime = &metav1.Time{Time: now}
	return reconcile.Result{RequeueAfter: schedule.Next(now).Sub(now)}, r.Status().Update(ctx, job)
}

func finished(job *batchv1.Job) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}
