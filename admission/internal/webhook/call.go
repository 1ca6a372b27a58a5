package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/admission/internal/match"
	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/webhook"
)

// maxResponseBytes bounds the body of a webhook's response.
const maxResponseBytes = 8 << 20

// maxStatusCode is the largest HTTP status code (RFC 9110 section 15).
const maxStatusCode = 599

// answer is a webhook's response, allowed or not.
type answer = admissionv1.AdmissionResponse

// callFailure is the error of a call without a valid response. The webhook's failure
// policy applies to it.
type callFailure struct{ err error }

func (f *callFailure) Error() string { return f.err.Error() }

// call calls a webhook. If the webhook rejects the request, or does not support dry run,
// the error is a *services.Status; any other error is a *callFailure. The answer has the
// warnings and audit annotations in either case.
func (w *Webhooks) call(ctx context.Context, h called, r *review.Review) (answer, error) {
	if r.DryRun && !h.dryRunSafe {
		return answer{}, services.BadRequest("admission webhook %q does not support dry run", h.name)
	}
	question := &admissionv1.AdmissionReview{Request: question(h, r)}
	question.Kind, question.APIVersion = "AdmissionReview", w.Vocabulary.Group("admission.")+"/"+h.version
	reply, err := h.exchange(ctx, question)
	if err == nil {
		err = checkReply(question, reply)
	}
	if err != nil {
		return answer{}, &callFailure{err}
	}
	if !reply.Response.Allowed {
		refusal := h.refusal(reply.Response.Result)
		if status := reply.Response.Result; status != nil && status.Code != 0 && status.Code != refusal.Code {
			w.Log.WarnContext(ctx, "a webhook rejected a request with a status code that is not an HTTP error", "webhook", h.name, "configuration", h.configuration,
				"code", status.Code, "answered", refusal.Code)
		}
		return *reply.Response, refusal
	}
	return *reply.Response, nil
}

// question returns the AdmissionRequest for a webhook.
func question(c called, r *review.Review) *admissionv1.AdmissionRequest {
	kind, of := typeOf(c.as)
	requestKind, requestOf := typeOf(r.Own())
	q := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kind, Resource: of, SubResource: r.Subresource,
		RequestKind: &requestKind, RequestResource: &requestOf, RequestSubResource: r.Subresource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1.Operation(r.Operation),
		Object: raw(c.object), OldObject: raw(c.old), DryRun: &r.DryRun, Options: raw(r.Options),
		UserInfo: authenticationv1.UserInfo{Username: r.User.Name, UID: r.User.UID, Groups: r.User.Groups},
	}
	if match.IsNamespace(r) {
		q.Namespace = r.Name
	}
	if len(r.User.Extra) > 0 {
		q.UserInfo.Extra = map[string]authenticationv1.ExtraValue{}
		for key, values := range r.User.Extra {
			q.UserInfo.Extra[key] = values
		}
	}
	return q
}

func typeOf(t services.ServedType) (metav1.GroupVersionKind, metav1.GroupVersionResource) {
	return metav1.GroupVersionKind{Group: t.KindGroup, Version: t.KindVersion, Kind: t.Kind},
		metav1.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource}
}

// raw wraps JSON; an empty slice becomes null.
func raw(object []byte) runtime.RawExtension {
	if len(object) == 0 {
		return runtime.RawExtension{}
	}
	return runtime.RawExtension{Raw: object}
}

// exchange sends an AdmissionReview and returns the response.
func (h *hook) exchange(ctx context.Context, question *admissionv1.AdmissionReview) (*admissionv1.AdmissionReview, error) {
	if h.version == "" {
		return nil, errors.New("it understands neither v1 nor v1beta1 of AdmissionReview")
	}
	reply := &admissionv1.AdmissionReview{}
	ctx, span := tracing.StartCall(ctx, "webhook", "admit")
	span.Set("portico.webhook", h.configuration)
	err := h.client.Post(ctx, question, reply, webhook.Limits{Timeout: h.timeout, Bytes: maxResponseBytes})
	span.End(err)
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// checkReply checks that a response belongs to a request. In v1beta1 the response need not
// repeat type and uid.
func checkReply(question, reply *admissionv1.AdmissionReview) error {
	response := reply.Response
	if response == nil {
		return errors.New("its answer has no response")
	}
	if strings.HasSuffix(question.APIVersion, "/v1beta1") {
		return nil
	}
	switch {
	case reply.TypeMeta != question.TypeMeta:
		return fmt.Errorf("it answered %s of %s, not %s of %s", reply.Kind, reply.APIVersion, question.Kind, question.APIVersion)
	case response.UID != question.Request.UID:
		return fmt.Errorf("it answered request %q, not %q", response.UID, question.Request.UID)
	case (len(response.Patch) > 0) != (response.PatchType != nil):
		return errors.New("its response has only one of patch and patchType")
	case response.PatchType != nil && *response.PatchType != admissionv1.PatchTypeJSONPatch:
		return fmt.Errorf("its patch is of unknown type %q", *response.PatchType)
	}
	return nil
}

// refusal converts a webhook's rejection to an API error. A code that is not an HTTP error
// becomes 400.
func (h *hook) refusal(result *metav1.Status) *services.Status {
	if result == nil {
		result = &metav1.Status{}
	}
	message := fmt.Sprintf("admission webhook %q denied the request", h.name)
	if text := cmp.Or(result.Message, string(result.Reason)); text != "" {
		message += ": " + text
	} else {
		message += " without explanation"
	}
	s := &services.Status{Code: result.Code, Reason: string(result.Reason), Message: message}
	if s.Code < http.StatusBadRequest || s.Code > maxStatusCode {
		s.Code = http.StatusBadRequest
	}
	if s.Reason == "" {
		s.Reason = reasonOf(s.Code)
	}
	if d := result.Details; d != nil {
		s.Details = &services.StatusDetails{Name: d.Name, Group: d.Group, Kind: d.Kind, UID: string(d.UID), RetryAfterSeconds: d.RetryAfterSeconds}
		for _, c := range d.Causes {
			s.Details.Causes = append(s.Details.Causes, services.StatusCause{Reason: string(c.Type), Message: c.Message, Field: c.Field})
		}
	}
	return s
}

// reasonOf returns the reason for a status code, for webhooks that return none.
func reasonOf(code int32) string {
	switch code {
	case http.StatusForbidden:
		return services.ReasonForbidden
	case http.StatusNotFound:
		return services.ReasonNotFound
	case http.StatusConflict:
		return services.ReasonConflict
	case http.StatusUnprocessableEntity:
		return services.ReasonInvalid
	case http.StatusTooManyRequests:
		return services.ReasonTooManyRequests
	}
	if code >= http.StatusInternalServerError {
		return services.ReasonInternalError
	}
	return services.ReasonBadRequest
}
