package optional

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/admission/internal/namespaces"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/vocabulary"
)

// NamespaceExists refuses with NotFound (404) requests in namespaces that are missing.
type NamespaceExists struct{ Namespaces namespaces.Known }

// Validate handles deletions as well.
func (p NamespaceExists) Validate(ctx context.Context, r *review.Review) error {
	if r.Operation == services.OperationConnect || r.Namespace == "" || r.Type() == namespaces.Type {
		return nil
	}
	_, err := p.Namespaces.Get(ctx, r.Namespace)
	return err
}

// NamespaceAutoProvision creates the missing namespaces of new objects. It does so for
// users who may not create namespaces, too.
type NamespaceAutoProvision struct {
	Namespaces namespaces.Known
	Store      services.Store
	Vocabulary vocabulary.Vocabulary
	// Admission reviews the new namespaces, like those of any user.
	Admission services.Admission
}

// Mutate refuses with Forbidden (403) what lacks a namespace that cannot be created.
func (p NamespaceAutoProvision) Mutate(ctx context.Context, r *review.Review) error {
	if r.Operation != services.OperationCreate || r.DryRun || r.Namespace == "" || r.Type() == namespaces.Type {
		return nil
	}
	_, err := p.Namespaces.Get(ctx, r.Namespace)
	if !services.IsReason(err, services.ReasonNotFound) {
		return err
	}
	err = p.create(ctx, r.Namespace)
	var unavailable *services.Status
	switch {
	case err == nil, services.IsReason(err, services.ReasonAlreadyExists):
		return nil
	case errors.As(err, &unavailable) && unavailable.Code >= 500:
		return err
	}
	return r.Forbid("%v", err)
}

// content is a namespace as it is stored.
type content struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		Finalizers []string `json:"finalizers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type metadata struct {
	Annotations       map[string]string `json:"annotations,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp"`
	Labels            map[string]string `json:"labels"`
	Name              string            `json:"name"`
	UID               string            `json:"uid"`
}

func (p NamespaceAutoProvision) create(ctx context.Context, name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return services.Invalid("", "Namespace", name, []services.StatusCause{{Reason: services.CauseInvalid, Field: "metadata.name",
			Message: fmt.Sprintf("Invalid value: %q: %s", name, strings.Join(wrong, ", "))}})
	}
	n := content{APIVersion: "v1", Kind: "Namespace", Metadata: metadata{
		Name: name, UID: string(uuid.NewUUID()), CreationTimestamp: time.Now().UTC().Format(time.RFC3339),
		Labels: map[string]string{p.Vocabulary.Qualified("", "metadata.name"): name},
	}}
	n.Spec.Finalizers, n.Status.Phase = []string{p.Vocabulary.NamespaceFinalizer}, "Active"
	if err := p.admit(ctx, &n); err != nil {
		return err
	}
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = p.Store.Create(ctx, services.CreateRequest{Key: resource.Key{GroupResource: namespaces.Type, Name: name}, Content: services.Content{
		JSON: raw, UID: n.Metadata.UID, Labels: n.Metadata.Labels, Fields: map[string]string{"status.phase": n.Status.Phase},
	}})
	return err
}

// admit asks admission about a new namespace. Plugins and webhooks may refuse it and
// change its labels and annotations.
func (p NamespaceAutoProvision) admit(ctx context.Context, n *content) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	request := services.AdmissionRequest{
		UID: string(uuid.NewUUID()), Operation: services.OperationCreate, Version: "v1", Resource: "namespaces", Kind: "Namespace", Name: n.Metadata.Name,
		User: services.UserInfo{Name: "system:apiserver", Groups: []string{services.GroupMasters}}, Object: raw,
		Options: []byte(`{"kind":"CreateOptions","apiVersion":"` + p.Vocabulary.Group("meta.") + `/v1"}`),
	}
	answer, err := p.Admission.Mutate(ctx, request)
	if err != nil {
		return err
	}
	if answer.Object != nil {
		var changed content
		if err := json.Unmarshal(answer.Object, &changed); err != nil {
			return fmt.Errorf("reading the admitted namespace: %w", err)
		}
		if err := n.take(changed.Metadata, p.Vocabulary); err != nil {
			return err
		}
		if request.Object, err = json.Marshal(n); err != nil {
			return err
		}
	}
	_, err = p.Admission.Validate(ctx, request)
	return err
}

// take takes over labels and annotations, when they are valid.
func (n *content) take(changed metadata, v vocabulary.Vocabulary) error {
	if changed.Labels == nil {
		changed.Labels = map[string]string{}
	}
	changed.Labels[v.Qualified("", "metadata.name")] = n.Metadata.Name
	wrong := metavalidation.ValidateLabels(changed.Labels, field.NewPath("metadata", "labels"))
	wrong = append(wrong, apivalidation.ValidateAnnotations(changed.Annotations, field.NewPath("metadata", "annotations"))...)
	n.Metadata.Labels, n.Metadata.Annotations = changed.Labels, changed.Annotations
	return wrong.ToAggregate()
}
