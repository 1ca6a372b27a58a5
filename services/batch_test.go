package services_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/portico-platform/portico/services"
)

// naming refuses to mutate, and warns of the name when it validates.
type naming struct{}

func (naming) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{}, services.Forbidden("", "pods", r.Name, "no")
}

func (naming) Validate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return services.AdmissionResponse{Warnings: []string{r.Name}}, nil
}

// TestBatched: each request of a batch gets its own answer, and too many are refused.
func TestBatched(t *testing.T) {
	b := services.Batched(naming{})
	var requests []services.AdmissionRequest
	for i := range 256 {
		requests = append(requests, services.AdmissionRequest{UID: fmt.Sprint("uid-", i), Name: fmt.Sprint("name-", i)})
	}
	mutated, err := b.MutateBatch(t.Context(), requests)
	if err != nil || len(mutated) != 256 {
		t.Fatal(len(mutated), err)
	}
	validated, err := b.ValidateBatch(t.Context(), requests)
	if err != nil || len(validated) != 256 {
		t.Fatal(len(validated), err)
	}
	for i, r := range requests {
		if s := services.AsStatus(mutated[i].Err); mutated[i].UID != r.UID || s == nil || s.Details.Name != r.Name {
			t.Errorf("%s: %+v", r.UID, mutated[i])
		}
		if v := validated[i]; v.UID != r.UID || v.Err != nil || len(v.Response.Warnings) != 1 || v.Response.Warnings[0] != r.Name {
			t.Errorf("%s: %+v", r.UID, v)
		}
	}
	if _, err := b.ValidateBatch(t.Context(), append(requests, requests[0])); !services.IsReason(err, services.ReasonBadRequest) {
		t.Error(err)
	}
}
