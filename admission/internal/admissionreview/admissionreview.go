// Package admissionreview asks about requests over HTTPS with AdmissionReview: it builds
// the question, checks the answer, applies its patch and converts its refusal. Whom to ask,
// and what a failed call means, is up to the caller. It serves "Admission plugins" of the
// specification.
package admissionreview

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/portico-platform/portico/admission/internal/review"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/kit/tracing"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

// MaxBytes bounds an answer.
const MaxBytes = 8 << 20

// maxStatusCode is the largest HTTP status code (RFC 9110 section 15).
const maxStatusCode = 599

// Answer is a response, allowed or not.
type Answer = admissionv1.AdmissionResponse

// Asker asks one webhook.
type Asker struct {
	Client *webhook.Client
	// Version of AdmissionReview; empty if the webhook supports neither v1 nor v1beta1.
	Version    string
	Vocabulary vocabulary.Vocabulary
	// Owner is the object that configures the webhook, for traces.
	Owner string
}

// Question is a request in the version that a webhook knows.
type Question struct {
	*review.Review
	// As is the type as which the webhook knows the objects, Object and Old are these.
	As          services.ServedType
	Object, Old []byte
}

// Ask asks about a request. An error means that there is no valid answer.
func (a *Asker) Ask(ctx context.Context, q Question, timeout time.Duration) (Answer, error) {
	if a.Version == "" {
		return Answer{}, errors.New("it understands neither v1 nor v1beta1 of AdmissionReview")
	}
	question := &admissionv1.AdmissionReview{Request: requestOf(q)}
	question.Kind, question.APIVersion = "AdmissionReview", a.Vocabulary.Group("admission.")+"/"+a.Version
	reply := &admissionv1.AdmissionReview{}
	ctx, span := tracing.StartCall(ctx, "webhook", "admit")
	span.Set("portico.webhook", a.Owner)
	err := a.Client.Post(ctx, question, reply, webhook.Limits{Timeout: timeout, Bytes: MaxBytes})
	span.End(err)
	if err == nil {
		err = checkReply(question, reply)
	}
	if err != nil {
		return Answer{}, err
	}
	return *reply.Response, nil
}

// requestOf returns the AdmissionRequest for a webhook.
func requestOf(c Question) *admissionv1.AdmissionRequest {
	r := c.Review
	kind, of := typeOf(c.As)
	requestKind, requestOf := typeOf(r.Own())
	q := &admissionv1.AdmissionRequest{
		UID: uuid.NewUUID(), Kind: kind, Resource: of, SubResource: r.Subresource,
		RequestKind: &requestKind, RequestResource: &requestOf, RequestSubResource: r.Subresource,
		Name: r.Name, Namespace: r.Namespace, Operation: admissionv1.Operation(r.Operation),
		Object: raw(c.Object), OldObject: raw(c.Old), DryRun: &r.DryRun, Options: raw(r.Options),
		UserInfo: authenticationv1.UserInfo{Username: r.User.Name, UID: r.User.UID, Groups: r.User.Groups},
	}
	if r.IsNamespace() {
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

// Refusal converts a rejection to an API error. Its message begins with who denied the
// request. A code that is not an HTTP error becomes 400.
func Refusal(who string, result *metav1.Status) *services.Status {
	if result == nil {
		result = &metav1.Status{}
	}
	message := who + " denied the request"
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
		s.Reason = services.ReasonFor(s.Code)
	}
	if d := result.Details; d != nil {
		s.Details = &services.StatusDetails{Name: d.Name, Group: d.Group, Kind: d.Kind, UID: string(d.UID), RetryAfterSeconds: d.RetryAfterSeconds}
		for _, c := range d.Causes {
			s.Details.Causes = append(s.Details.Causes, services.StatusCause{Reason: string(c.Type), Message: c.Message, Field: c.Field})
		}
	}
	return s
}

// Patched applies the patch of an answer to an object, which is empty if the operation has
// none.
func Patched(ctx context.Context, object, patch []byte) ([]byte, error) {
	if len(object) == 0 {
		return nil, errors.New("it patches an object where the operation has none")
	}
	after, err := jsonpatch.Apply(ctx, object, patch)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, jsonpatch.Why(err))
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(after, &o); err != nil {
		return nil, fmt.Errorf("its patch leaves no object: %w", err)
	}
	return after, nil
}
