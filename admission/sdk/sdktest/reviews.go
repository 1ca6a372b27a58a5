package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/jsonpatch"
	"github.com/portico-platform/portico/services/vocabulary"
)

// reviews calls a service as kube-apiserver does: AdmissionReview over HTTPS.
type reviews struct {
	url    string
	client *http.Client
}

func (s served) reviews() services.Admission {
	return reviews{"https://" + s.ReviewAddress, &http.Client{Transport: &http.Transport{TLSClientConfig: s.trust, ForceAttemptHTTP2: true}}}
}

// Mutate implements services.Admission.
func (c reviews) Mutate(ctx context.Context, r sdk.Request) (services.AdmissionResponse, error) {
	response, patch, err := c.post(ctx, "mutate", r)
	if err != nil || patch == nil {
		return response, err
	}
	response.Object, err = jsonpatch.Apply(ctx, r.Object, patch)
	return response, err
}

// Validate implements services.Admission.
func (c reviews) Validate(ctx context.Context, r sdk.Request) (services.AdmissionResponse, error) {
	response, patch, err := c.post(ctx, "validate", r)
	if patch != nil {
		return services.AdmissionResponse{}, fmt.Errorf("validating returned a patch: %s", patch)
	}
	return response, err
}

func (c reviews) post(ctx context.Context, path string, r sdk.Request) (services.AdmissionResponse, []byte, error) {
	var none services.AdmissionResponse
	question := question(r)
	body, err := json.Marshal(question)
	if err != nil {
		return none, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/"+path+"?timeout=10s", bytes.NewReader(body))
	if err != nil {
		return none, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.client.Do(request)
	if err != nil {
		return none, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return none, nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return none, nil, &services.Status{Code: int32(answer.StatusCode), Reason: services.ReasonInternalError, Message: string(text)}
	}
	return read(question, text)
}

// question returns a request as an AdmissionReview.
func question(r sdk.Request) map[string]any {
	kind := map[string]any{"group": r.Group, "version": r.Version, "kind": r.Kind}
	if r.KindVersion != "" {
		kind["group"], kind["version"] = r.KindGroup, r.KindVersion
	}
	return map[string]any{
		"apiVersion": vocabulary.K8s().Group("admission.") + "/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid": r.UID, "kind": kind, "resource": map[string]any{"group": r.Group, "version": r.Version, "resource": r.Resource},
			"subResource": r.Subresource, "name": r.Name, "namespace": r.Namespace, "operation": r.Operation, "dryRun": r.DryRun,
			"userInfo": map[string]any{"username": r.User.Name, "uid": r.User.UID, "groups": r.User.Groups, "extra": r.User.Extra},
			"object":   raw(r.Object), "oldObject": raw(r.OldObject), "options": raw(r.Options),
		},
	}
}

// raw is null for nil.
func raw(text []byte) json.RawMessage {
	if text == nil {
		return json.RawMessage("null")
	}
	return text
}

// read returns the response in an AdmissionReview, and its patch.
func read(question map[string]any, text []byte) (services.AdmissionResponse, []byte, error) {
	var review struct {
		APIVersion, Kind string
		Response         struct {
			UID              string
			Allowed          bool
			Patch            []byte
			PatchType        string
			Warnings         []string
			AuditAnnotations map[string]string
			Status           struct {
				Code            int32
				Reason, Message string
				Details         *services.StatusDetails
			}
		}
	}
	if err := json.Unmarshal(text, &review); err != nil {
		return services.AdmissionResponse{}, nil, fmt.Errorf("the response is not an AdmissionReview: %w", err)
	}
	r := review.Response
	response := services.AdmissionResponse{Warnings: r.Warnings, AuditAnnotations: r.AuditAnnotations}
	asked := question["request"].(map[string]any)["uid"]
	switch {
	case review.APIVersion != question["apiVersion"] || review.Kind != question["kind"] || r.UID != asked:
		return response, nil, fmt.Errorf("the response is %s of %s for %q, not for %q", review.Kind, review.APIVersion, r.UID, asked)
	case (r.Patch != nil) != (r.PatchType == "JSONPatch"):
		return response, nil, fmt.Errorf("a patch of type %q: %s", r.PatchType, r.Patch)
	case !r.Allowed:
		return response, nil, &services.Status{Code: r.Status.Code, Reason: r.Status.Reason, Message: r.Status.Message, Details: r.Status.Details}
	}
	return response, r.Patch, nil
}

var _ services.Admission = reviews{}
