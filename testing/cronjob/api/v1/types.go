// Package v1 is the API of the sample operator: a CronJob that creates Jobs.
package v1

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group version of the types.
var GroupVersion = schema.GroupVersion{Group: "batch.tutorial.example.org", Version: "v1"}

// AddToScheme adds the types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// ConcurrencyPolicy says what happens when a Job is due while another one runs.
type ConcurrencyPolicy string

// The policies.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronJobSpec is the desired state of a CronJob.
type CronJobSpec struct {
	// Schedule is in the format of cron.
	Schedule string `json:"schedule"`
	// ConcurrencyPolicy is Allow if it is not given.
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend stops further Jobs.
	Suspend *bool `json:"suspend,omitempty"`
	// JobTemplate is the Job that is created.
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
}

// CronJobStatus is what was observed.
type CronJobStatus struct {
	// Active are the Jobs that run.
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// LastScheduleTime is when a Job was last created.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// CronJob creates Jobs on a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CronJobSpec   `json:"spec,omitempty"`
	Status CronJobStatus `json:"status,omitempty"`
}

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []CronJob `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (c *CronJob) DeepCopyObject() runtime.Object {
	out := &CronJob{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: c.Spec, Status: c.Status}
	out.Spec.JobTemplate = *c.Spec.JobTemplate.DeepCopy()
	if c.Spec.Suspend != nil {
		suspend := *c.Spec.Suspend
		out.Spec.Suspend = &suspend
	}
	out.Status.Active = append([]corev1.ObjectReference(nil), c.Status.Active...)
	out.Status.LastScheduleTime = c.Status.LastScheduleTime.DeepCopy()
	return out
}

// DeepCopyObject implements runtime.Object.
func (l *CronJobList) DeepCopyObject() runtime.Object {
	out := &CronJobList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*CronJob))
	}
	return out
}
