// Package webhook sets defaults of CronJobs and rejects invalid ones.
package webhook

import (
	"context"

	"github.com/robfig/cron"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	batch "example.org/cronjob/api/v1"
)

// Setup registers the webhooks with a manager.
func Setup(m ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(m, &batch.CronJob{}).WithDefaulter(hook{}).WithValidator(hook{}).Complete()
}

type hook struct{}

// Default implements admission.Defaulter.
func (hook) Default(_ context.Context, job *batch.CronJob) error {
	if job.Spec.ConcurrencyPolicy == "" {
		job.Spec.ConcurrencyPolicy = batch.AllowConcurrent
	}
	if job.Spec.Suspend == nil {
		job.Spec.Suspend = new(bool)
	}
	return nil
}

// ValidateCreate implements admission.Validator.
func (hook) ValidateCreate(_ context.Context, job *batch.CronJob) (admission.Warnings, error) {
	return nil, validate(job)
}

// ValidateUpdate implements admission.Validator.
func (hook) ValidateUpdate(_ context.Context, _, job *batch.CronJob) (admission.Warnings, error) {
	return nil, validate(job)
}

// ValidateDelete implements admission.Validator.
func (hook) ValidateDelete(context.Context, *batch.CronJob) (admission.Warnings, error) {
	return nil, nil
}

func validate(job *batch.CronJob) error {
	var errs field.ErrorList
	if len(job.Name) > validation.DNS1035LabelMaxLength-11 {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), job.Name, "must be no more than 52 characters"))
	}
	if _, err := cron.ParseStandard(job.Spec.Schedule); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("spec", "schedule"), job.Spec.Schedule, err.Error()))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: batch.GroupVersion.Group, Kind: "CronJob"}, job.Name, errs)
}
