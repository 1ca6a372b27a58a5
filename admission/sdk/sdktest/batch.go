package sdktest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services"
)

// repeated is how often each request is in a batch.
const repeated = 3

// batches checks that each request of a batch gets the answer that it gets alone.
func (s *suite) batches(t *testing.T) {
	batch, ok := s.service.(services.AdmissionBatch)
	if !ok {
		t.Skip("the client sends no batches")
	}
	var requests []sdk.Request
	for n := range repeated {
		for i, r := range s.all {
			r.UID, r.DryRun = fmt.Sprintf("batch-%d-%d", n, i), true
			requests = append(requests, r)
		}
	}
	for _, phase := range []struct {
		name  string
		all   func(context.Context, []sdk.Request) ([]services.AdmissionResult, error)
		alone func(context.Context, sdk.Request) (services.AdmissionResponse, error)
	}{{"Mutate", batch.MutateBatch, s.service.Mutate}, {"Validate", batch.ValidateBatch, s.service.Validate}} {
		results, err := phase.all(t.Context(), requests)
		if errors.Is(err, services.ErrNoBatch) {
			t.Skip("the service offers no batches")
		}
		if err != nil {
			t.Fatalf("%s: %v", phase.name, err)
		}
		byUID := map[string]services.AdmissionResult{}
		for _, result := range results {
			byUID[result.UID] = result
		}
		if len(results) != len(requests) || len(byUID) != len(requests) {
			t.Errorf("%s: %d results for %d uids of %d requests", phase.name, len(results), len(byUID), len(requests))
		}
		for _, r := range requests {
			got, found := byUID[r.UID]
			if !found {
				t.Errorf("%s: no result for %s", phase.name, r.UID)
				continue
			}
			response, err := phase.alone(t.Context(), r)
			want := services.AdmissionResult{Response: response, Err: err}
			if !alike(got, want) {
				t.Errorf("%s of %s: %s in a batch, %s alone", phase.name, r.Object, shown(got), shown(want))
			}
		}
	}
}

// alike reports whether two results are the same decision about the same object.
func alike(a, b services.AdmissionResult) bool {
	x, y := services.AsStatus(a.Err), services.AsStatus(b.Err)
	switch {
	case (x == nil) != (y == nil):
		return false
	case x != nil:
		return x.Code == y.Code && x.Reason == y.Reason
	case a.Response.Object == nil || b.Response.Object == nil:
		return a.Response.Object == nil && b.Response.Object == nil
	}
	return sameJSON(a.Response.Object, b.Response.Object)
}

func shown(r services.AdmissionResult) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	return "admitted with object " + string(r.Response.Object)
}
