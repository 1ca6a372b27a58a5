package sdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/portico-platform/portico/services"
)

// admissionReview is the AdmissionReview of v1 and v1beta1, as far as the contract has its
// fields. The types of k8s.io/api and apimachinery are not used: they would double the
// modules that every admission service depends on.
type admissionReview struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID         string     `json:"uid"`
	Kind        reviewType `json:"kind"`
	Resource    reviewType `json:"resource"`
	SubResource string     `json:"subResource"`
	Name        string     `json:"name"`
	Namespace   string     `json:"namespace"`
	Operation   string     `json:"operation"`
	UserInfo    struct {
		Username string              `json:"username"`
		UID      string              `json:"uid"`
		Groups   []string            `json:"groups"`
		Extra    map[string][]string `json:"extra"`
	} `json:"userInfo"`
	Object    json.RawMessage `json:"object"`
	OldObject json.RawMessage `json:"oldObject"`
	Options   json.RawMessage `json:"options"`
	DryRun    *bool           `json:"dryRun"`
}

// reviewType is a kind or a resource type.
type reviewType struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Kind     string `json:"kind,omitempty"`
	Resource string `json:"resource,omitempty"`
}

type reviewResponse struct {
	UID              string            `json:"uid"`
	Allowed          bool              `json:"allowed"`
	Status           *reviewStatus     `json:"status,omitempty"`
	Patch            []byte            `json:"patch,omitempty"`
	PatchType        string            `json:"patchType,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	Warnings         []string          `json:"warnings,omitempty"`
}

// reviewHandler serves AdmissionReview with the handlers of the service. A failure is an HTTP
// error, so that the caller applies its failure policy; a refusal is a response.
func reviewHandler(a *admission, maxBytes int) http.Handler {
	mux := http.NewServeMux()
	for _, p := range []phase{mutating, validating} {
		mux.HandleFunc("POST /"+string(p), func(w http.ResponseWriter, r *http.Request) {
			review, status := readReview(http.MaxBytesReader(w, r.Body, int64(maxBytes)), r.Header)
			if status != nil {
				http.Error(w, status.Message, int(status.Code))
				return
			}
			ctx, cancel, err := withTimeout(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			defer cancel()
			if status := a.answer(ctx, p, review); status != nil {
				http.Error(w, status.Message, int(status.Code))
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(review)
		})
	}
	return mux
}

// withTimeout returns the context of a request, with the timeout that the caller sent.
func withTimeout(r *http.Request) (context.Context, context.CancelFunc, error) {
	text := r.URL.Query().Get("timeout")
	if text == "" {
		return r.Context(), func() {}, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 {
		return nil, nil, fmt.Errorf("timeout: %q is not a positive duration", text)
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, nil
}

// readReview reads a request. The Status says what is wrong with it.
func readReview(body io.Reader, header http.Header) (*admissionReview, *services.Status) {
	if media, _, err := mime.ParseMediaType(header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, &services.Status{Code: http.StatusUnsupportedMediaType, Message: "Content-Type: application/json is required"}
	}
	text, err := io.ReadAll(body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, services.TooLarge("the request exceeds %d bytes", tooLarge.Limit)
	case err != nil:
		return nil, services.BadRequest("reading the request: %v", err)
	}
	review := &admissionReview{}
	if err := json.Unmarshal(text, review); err != nil {
		return nil, services.BadRequest("the request is not an AdmissionReview: %v", err)
	}
	group, version, _ := strings.Cut(review.APIVersion, "/")
	switch {
	case review.Kind != "AdmissionReview" || !strings.HasPrefix(group, "admission.") || version != "v1" && version != "v1beta1":
		return nil, services.BadRequest("%q of %q is not an AdmissionReview of v1 or v1beta1", review.Kind, review.APIVersion)
	case review.Request == nil:
		return nil, services.BadRequest("request is missing")
	case review.Request.UID == "":
		return nil, services.BadRequest("request.uid is missing")
	}
	return review, nil
}

// answer replaces the request of the review by its response. It returns the Status of a
// failure.
func (a *admission) answer(ctx context.Context, p phase, review *admissionReview) *services.Status {
	request := review.Request
	r, err := a.review(ctx, p, request.contract())
	status := services.AsStatus(err)
	if err != nil && refusal(err) == nil {
		return status
	}
	response := &reviewResponse{UID: request.UID, Allowed: err == nil, Warnings: r.warnings, AuditAnnotations: r.audit}
	if err != nil {
		response.Status = statusOf(status)
	} else if len(r.operations) > 0 {
		patch, err := json.Marshal(r.patch())
		if err != nil {
			return services.AsStatus(fmt.Errorf("encoding the patch: %w", err))
		}
		response.Patch, response.PatchType = patch, "JSONPatch"
	}
	review.Request, review.Response = nil, response
	return nil
}

// patch returns the operations of the review; one that removes has no value.
func (r *Review) patch() []any {
	patch := make([]any, len(r.operations))
	for i, op := range r.operations {
		patch[i] = op
		if op.Op == "remove" {
			patch[i] = struct {
				Op   string `json:"op"`
				Path string `json:"path"`
			}{op.Op, op.Path}
		}
	}
	return patch
}

// contract returns the request of the contract. OwnerTypes are not part of AdmissionReview.
func (r *reviewRequest) contract() services.AdmissionRequest {
	request := services.AdmissionRequest{
		UID: r.UID, Operation: services.Operation(r.Operation),
		Group: r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: r.SubResource,
		Kind: r.Kind.Kind, Namespace: r.Namespace, Name: r.Name,
		User:   services.UserInfo{Name: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups, Extra: r.UserInfo.Extra},
		Object: present(r.Object), OldObject: present(r.OldObject), Options: present(r.Options),
		DryRun: r.DryRun != nil && *r.DryRun,
	}
	if r.Kind.Group != r.Resource.Group || r.Kind.Version != r.Resource.Version {
		request.KindGroup, request.KindVersion = r.Kind.Group, r.Kind.Version
	}
	if request.Group == "" && request.Resource == "namespaces" {
		request.Namespace = "" // AdmissionReview has the namespace's own name here
	}
	return request
}

// present returns nil for JSON's null.
func present(raw json.RawMessage) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// reviewStatus is the API's Status.
type reviewStatus struct {
	Status  string         `json:"status"`
	Code    int32          `json:"code"`
	Reason  string         `json:"reason"`
	Message string         `json:"message"`
	Details *reviewDetails `json:"details,omitempty"`
}

type reviewDetails struct {
	Name              string        `json:"name,omitempty"`
	Group             string        `json:"group,omitempty"`
	Kind              string        `json:"kind,omitempty"`
	UID               string        `json:"uid,omitempty"`
	Causes            []reviewCause `json:"causes,omitempty"`
	RetryAfterSeconds int32         `json:"retryAfterSeconds,omitempty"`
}

type reviewCause struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Field   string `json:"field,omitempty"`
}

// statusOf returns a refusal as the API's Status.
func statusOf(s *services.Status) *reviewStatus {
	status := &reviewStatus{Status: "Failure", Code: s.Code, Reason: s.Reason, Message: cmp.Or(s.Message, s.Reason)}
	if d := s.Details; d != nil {
		status.Details = &reviewDetails{Name: d.Name, Group: d.Group, Kind: d.Kind, UID: d.UID, RetryAfterSeconds: d.RetryAfterSeconds}
		for _, c := range d.Causes {
			status.Details.Causes = append(status.Details.Causes, reviewCause(c))
		}
	}
	return status
}
