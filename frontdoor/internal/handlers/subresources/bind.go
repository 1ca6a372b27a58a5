package subresources

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/crd/conditions"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/schema/rules"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/featuregate"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// pods is where pods are kept.
var pods = resource.GroupResource{Resource: "pods"}

// bind gives a pod its node. One that has a node already, or is going, is a Conflict
// (409).
func (h *Handlers) bind(w http.ResponseWriter, r *request.Request) error {
	a, err := h.read(w, r, r.Engine.BodyType(r.Type, r.Subresource))
	if err != nil {
		return err
	}
	if err := h.admit(w, a); err != nil {
		return err
	}
	binding, err := as[corev1.Binding](a.body)
	if err != nil {
		return err
	}
	if err := checkBinding(binding); err != nil { // admission may have changed it
		return err
	}
	err = h.Writes.Amend(r.Context(), amend.Amendment{Engine: r.Engine, Type: r.Engine.Types.Stored(pods), DryRun: a.options.DryRun,
		Key: resource.Key{GroupResource: pods, Namespace: r.Namespace, Name: binding.Name},
		Change: func(object map[string]any) error {
			if err := h.assign(object, binding); err != nil {
				return err
			}
			if r.Engine.FeatureOn(featuregate.TopologyLabels) {
				label(object, binding.Labels)
			}
			return nil
		}})
	if err != nil {
		return err
	}
	h.done(w, a)
	return nil
}

func checkBinding(b *corev1.Binding) error {
	var causes []services.StatusCause
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		causes = append(causes, services.StatusCause{Reason: services.CauseNotSupported, Field: "target.kind",
			Message: fmt.Sprintf("Unsupported value: %q: supported values: \"Node\", \"<empty>\"", b.Target.Kind)})
	}
	for _, err := range metav1validation.ValidateLabels(b.Labels, field.NewPath("metadata", "labels")) {
		causes = append(causes, services.StatusCause{Reason: services.CauseInvalid, Field: err.Field, Message: err.ErrorBody()})
	}
	if b.Target.Name == "" {
		causes = append(causes, services.StatusCause{Reason: services.CauseRequired, Field: "target.name", Message: "Required value"})
	}
	if len(causes) > 0 {
		return services.Invalid("", "Binding", b.Name, causes)
	}
	if b.Name == "" {
		return services.BadRequest("Name parameter required.")
	}
	return nil
}

// label adds the labels of a binding to the pod, such as the topology labels of its node.
func label(pod map[string]any, labels map[string]string) {
	if len(labels) == 0 {
		return
	}
	all := tree.Object(strategy.Metadata(pod), "labels")
	for key, value := range labels {
		all[key] = value
	}
}

// assign writes the binding into the pod.
func (h *Handlers) assign(pod map[string]any, b *corev1.Binding) error {
	conflict := func(format string, args ...any) error {
		return services.Conflict("", "pods/binding", b.Name, fmt.Sprintf(format, args...))
	}
	other := func(what string, given, is any) error {
		return services.Conflict("", "pods", b.Name, fmt.Sprintf("Precondition failed: %s in precondition: %v, %s in object meta: %v", what, given, what, is))
	}
	meta := strategy.Metadata(pod)
	switch {
	case b.UID != "" && string(b.UID) != meta["uid"]:
		return other("UID", b.UID, meta["uid"])
	case b.ResourceVersion != "" && b.ResourceVersion != meta["resourceVersion"]:
		return other("ResourceVersion", b.ResourceVersion, meta["resourceVersion"])
	case strategy.Deleting(pod):
		return conflict("pod %s is being deleted, cannot be assigned to a host", b.Name)
	case len(rules.List(tree.Child(pod, "spec"), "schedulingGates")) > 0:
		return conflict("pod %s has non-empty .spec.schedulingGates", b.Name)
	case tree.Text(pod, "spec", "nodeName") != "":
		return conflict("pod %s is already assigned to node %q", b.Name, tree.Text(pod, "spec", "nodeName"))
	}
	tree.Object(pod, "spec")["nodeName"] = b.Target.Name
	if len(b.Annotations) > 0 {
		annotations := tree.Object(meta, "annotations")
		for key, value := range b.Annotations {
			annotations[key] = value
		}
	}
	if status := tree.Object(pod, "status"); !conditions.True(status, "PodScheduled") {
		scheduled := map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil}
		conditions.Set(status, scheduled, h.Now().UTC().Format(time.RFC3339))
	}
	return nil
}
