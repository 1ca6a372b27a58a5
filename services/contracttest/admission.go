package contracttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/portico-platform/portico/services"
)

// AdmissionExample holds the requests that the implementation under test is set up for.
type AdmissionExample struct {
	Admitted services.AdmissionRequest
	// Rejected is rejected by Mutate or by Validate.
	Rejected services.AdmissionRequest
}

// Admission is the conformance suite of services.Admission.
func Admission(t *testing.T, open func(*testing.T) services.Admission, example AdmissionExample) {
	admission := open(t)
	t.Run("what is admitted may be changed, but only by mutating", func(t *testing.T) {
		r := example.Admitted
		before := bytes.Clone(r.Object)
		mutated, err := admission.Mutate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Object, before) {
			t.Error("the object of the request was written to")
		}
		if mutated.Object != nil {
			if !json.Valid(mutated.Object) {
				t.Errorf("the changed object is not JSON: %s", mutated.Object)
			}
			r.Object = mutated.Object
		}
		validated, err := admission.Validate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if validated.Object != nil {
			t.Errorf("validating changed the object: %s", validated.Object)
		}
	})
	t.Run("what is changed is not validated in the same call", func(t *testing.T) {
		r := example.Admitted
		r.AndValidate = true
		for range 2 { // at the latest the second one changes nothing
			got, err := admission.Mutate(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if got.Validated && got.Object != nil {
				t.Error("validated an object that it changed")
			}
			if got.Object == nil {
				break
			}
			r.Object = got.Object
		}
		rejected := example.Rejected
		rejected.AndValidate = true
		if got, err := admission.Mutate(t.Context(), rejected); err == nil && got.Validated {
			t.Error("a rejected request was validated")
		}
		rejected.AndValidate = false
		if got, err := admission.Mutate(t.Context(), rejected); err == nil && (got.Validated || got.Unconcerned > 0 || got.UnconcernedHere > 0) {
			t.Errorf("a request that Validate rejects: %+v", got)
		}
	})
	t.Run("what is validated early is valid", func(t *testing.T) { validatedEarly(t, admission, example) })
	t.Run("what is rejected is a Status", func(t *testing.T) {
		err := review(t.Context(), admission, example.Rejected)
		var s *services.Status
		if !errors.As(err, &s) || s.Code < 400 || s.Reason == "" || s.Message == "" {
			t.Errorf("got %#v, want a Status with code, reason and message", err)
		}
	})
	t.Run("a dry run is decided alike", func(t *testing.T) {
		admitted, rejected := example.Admitted, example.Rejected
		admitted.DryRun, rejected.DryRun = true, true
		if err := review(t.Context(), admission, admitted); err != nil {
			t.Error(err)
		}
		if review(t.Context(), admission, rejected) == nil {
			t.Error("admitted")
		}
	})
}

func validatedEarly(t *testing.T, admission services.Admission, example AdmissionExample) {
	t.Helper()
	r := example.Admitted
	r.ValidateEarly = true
	got, err := admission.Mutate(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if r.ValidateEarly = false; got.Object != nil {
		r.Object = got.Object
	}
	if _, err := admission.Validate(t.Context(), r); got.Validated && err != nil {
		t.Errorf("validated, but then %v", err)
	}
	rejected := example.Rejected
	_, before := admission.Mutate(t.Context(), rejected)
	rejected.ValidateEarly = true
	switch got, err := admission.Mutate(t.Context(), rejected); {
	case (err == nil) != (before == nil):
		t.Errorf("mutating says %v, and with early validation %v", before, err)
	case err == nil && got.Validated:
		t.Error("a rejected request was validated")
	}
}

func review(ctx context.Context, admission services.Admission, r services.AdmissionRequest) error {
	mutated, err := admission.Mutate(ctx, r)
	if err != nil {
		return err
	}
	if mutated.Object != nil {
		r.Object = mutated.Object
	}
	_, err = admission.Validate(ctx, r)
	return err
}
