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
	"github.com/portico-platform/portico/services/ledger"
	"github.com/portico-platform/portico/services/vocabulary"
	"github.com/portico-platform/portico/services/webhook"
)

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
	// NamesPhase makes errors begin with the phase of the call that failed, as kube-apiserver does at release 1.36.
	NamesPhase bool
}

// Question is a request in the version that a webhook knows.
type Question struct {
	*review.Review
	// As is the type as which the webhook knows the objects, Object and Old are these.
	As          services.ServedType
	Object, Old []byte
	// Validates is true if the answer may not have a patch.
	Validates bool
}

// Ask asks about a request. An error means that there is no valid answer.
func (a *Asker) Ask(ctx context.Context, q Question, timeout time.Duration) (Answer, error) {
	if a.Version == "" {
		return Answer{}, a.failed("could not create admission objects", errors.New("webhook does not accept known AdmissionReview versions (v1, v1beta1)"))
	}
	question := &admissionv1.AdmissionReview{Request: requestOf(q)}
	question.Kind, question.APIVersion = "AdmissionReview", a.Vocabulary.Group("admission.")+"/"+a.Version
	reply := &admissionv1.AdmissionReview{}
	ctx, span := tracing.StartCall(ctx, "webhook", "admit")
	span.Set("portico.webhook", a.Owner)
	err := a.Client.Post(ctx, question, reply, webhook.Limits{Timeout: timeout, Text: ledger.AdmissionAnswer})
	span.End(err)
	if err != nil {
		return Answer{}, a.failed("failed to call webhook", err)
	}
	if err := checkReply(question, reply, q.Validates); err != nil {
		return Answer{}, a.failed("received invalid webhook response", err)
	}
	return *reply.Response, nil
}

// failed returns the error of a phase.
func (a *Asker) failed(phase string, err error) error {
	if !a.NamesPhase {
		return err
	}
	return fmt.Errorf("%s: %w", phase, err)
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
// repeat type and uid, and its patch is a JSON patch whatever its type is. What the patch is does not
// matter here: a rejection with a patch that Patched does not apply is valid. The messages are those of
// kube-apiserver.
func checkReply(question, reply *admissionv1.AdmissionReview, validates bool) error {
	response := reply.Response
	if response == nil {
		return errors.New("webhook response was absent")
	}
	if strings.HasSuffix(question.APIVersion, "/v1beta1") {
		response.PatchType = nil
		return nil
	}
	switch {
	case response.UID != question.Request.UID:
		return fmt.Errorf("expected response.uid=%q, got %q", question.Request.UID, response.UID)
	case reply.TypeMeta != question.TypeMeta:
		return fmt.Errorf("expected webhook response of %s, got %s", kindOf(question), kindOf(reply))
	case validates && len(response.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case validates && response.PatchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	case len(response.Patch) > 0 && response.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case len(response.Patch) == 0 && response.PatchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case response.PatchType != nil && *response.PatchType == "":
		return errors.New(`webhook returned invalid response.patchType of ""`)
	}
	return nil
}

func kindOf(r *admissionv1.AdmissionReview) string { return r.GroupVersionKind().String() }

const (
	// maxMessage bounds the message of a rejection, and maxDetail each other text of it, in bytes. It has
	// maxCauses at most.
	maxMessage = 64 << 10
	maxDetail  = 4 << 10
	maxCauses  = 100
)

// cut returns the beginning of a text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Refusal converts a rejection to an API error. Its message begins with who denied the
// request. A code that is not an HTTP error becomes 400. Long texts are cut off.
func Refusal(who string, result *metav1.Status) *services.Status {
	if result == nil {
		result = &metav1.Status{}
	}
	message := who + " denied the request"
	if text := cmp.Or(result.Message, string(result.Reason)); text != "" {
		message += ": " + cut(text, maxMessage)
	} else {
		message += " without explanation"
	}
	s := &services.Status{Code: result.Code, Reason: cut(string(result.Reason), maxDetail), Message: message}
	if s.Code < http.StatusBadRequest || s.Code > maxStatusCode {
		s.Code = http.StatusBadRequest
	}
	if s.Reason == "" {
		s.Reason = services.ReasonFor(s.Code)
	}
	if d := result.Details; d != nil {
		s.Details = &services.StatusDetails{Name: cut(d.Name, maxDetail), Group: cut(d.Group, maxDetail), Kind: cut(d.Kind, maxDetail),
			UID: cut(string(d.UID), maxDetail), RetryAfterSeconds: d.RetryAfterSeconds}
		for _, c := range d.Causes[:min(len(d.Causes), maxCauses)] {
			s.Details.Causes = append(s.Details.Causes, services.StatusCause{Reason: cut(string(c.Type), maxDetail), Message: cut(c.Message, maxDetail), Field: cut(c.Field, maxDetail)})
		}
	}
	return s
}

// ErrNoObject is the error of a patch where the operation has no object.
var ErrNoObject = errors.New("it patches an object, but the operation has none")

// UndecodableError is the error of a patch that cannot be decoded: that of the decoder.
type UndecodableError struct{ error }

// PatchTypeError is the error of a patch of this type, which is not supported.
type PatchTypeError admissionv1.PatchType

func (e PatchTypeError) Error() string { return fmt.Sprintf("unsupported patch type %q", string(e)) }

// Patched applies the patch of an answer to an object, which is empty if the operation has none. Like
// kube-apiserver it decodes the patch first, so that neither its type nor the lack of an object matter if
// it has no operations. The errors are, in this order, UndecodableError, ErrNoObject, PatchTypeError and
// those of package jsonpatch.
func Patched(ctx context.Context, object []byte, answer Answer) ([]byte, error) {
	patch, err := jsonpatch.Decode(answer.Patch)
	var tooLarge *services.Status
	switch {
	case errors.As(err, &tooLarge):
		return nil, err
	case err != nil:
		return nil, UndecodableError{err}
	case patch.Empty():
		return object, nil
	case len(object) == 0:
		return nil, ErrNoObject
	case answer.PatchType != nil && *answer.PatchType != admissionv1.PatchTypeJSONPatch:
		return nil, PatchTypeError(*answer.PatchType)
	}
	after, err := patch.Apply(ctx, object)
	if err != nil {
		return nil, err
	}
	var o map[string]json.RawMessage
	if err := json.Unmarshal(after, &o); err != nil {
		return nil, fmt.Errorf("the patch leaves no object: %w", err)
	}
	return after, nil
}
