package sdktest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services"
)

// Example holds requests that the service under test decides. At least one is needed.
type Example struct {
	Admitted []sdk.Request
	// Refused are refused by Mutate or by Validate.
	Refused []sdk.Request
}

// Contract checks a service against the contract three times: called in this process, over
// gRPC and as AdmissionReview. open returns a service with new state.
func Contract(t *testing.T, open func(t *testing.T) sdk.Service, example Example) {
	t.Run("in process", func(t *testing.T) { Protocol(t, Start(t, open(t)), example) })
	t.Run("gRPC", func(t *testing.T) { Protocol(t, serve(t, open(t)).dial(t), example) })
	t.Run("AdmissionReview", func(t *testing.T) { Protocol(t, serve(t, open(t)).reviews(), example) })
}

// Protocol checks an implementation of the contract in any language: a client of package
// services/rpc that is connected to it. If the client is also one of AdmissionBatch, and the
// service offers batches, they are checked too.
func Protocol(t *testing.T, a services.Admission, example Example) {
	s := &suite{a, example, append(example.Admitted[:len(example.Admitted):len(example.Admitted)], example.Refused...)}
	if len(s.all) == 0 {
		t.Fatal("the example has no request")
	}
	for _, check := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"examples are decided as expected", s.examples},
		{"a refusal is a Status", s.refusals},
		{"mutating twice changes nothing more", s.idempotent},
		{"mutating keeps the identity of the object", s.identity},
		{"validating changes nothing", s.validates},
		{"a dry run is decided alike", s.dryRuns},
		{"every operation is decided", s.operations},
		{"missing objects do no harm", s.missing},
		{"malformed objects do no harm", s.malformed},
		{"unknown kinds are admitted", s.unknown},
		{"a huge object is decided", s.huge},
		{"a deadline ends the review", s.deadline},
		{"a cancelled review does no harm", s.cancelled},
		{"concurrent reviews are decided alike", s.concurrent},
		{"a batch is decided as its requests alone", s.batches},
	} {
		t.Run(check.name, check.run)
	}
}

type suite struct {
	service services.Admission
	example Example
	all     []sdk.Request
}

// failed returns a failure, which is any error that is not a refusal.
func failed(err error) *services.Status {
	if s := services.AsStatus(err); s != nil && (s.Code < 400 || s.Code >= 500) {
		return s
	}
	return nil
}

func (s *suite) examples(t *testing.T) {
	for _, r := range s.example.Admitted {
		if got := Review(t.Context(), s.service, r); got.Err != nil {
			t.Errorf("%s of %s: refused: %+v", r.Operation, r.Object, *got.Err)
		}
	}
	for _, r := range s.example.Refused {
		if got := Review(t.Context(), s.service, r); got.Err == nil {
			t.Errorf("%s of %s: admitted", r.Operation, r.Object)
		} else if failed(got.Err) != nil {
			t.Errorf("%s of %s: failed: %+v", r.Operation, r.Object, *got.Err)
		}
	}
}

func (s *suite) refusals(t *testing.T) {
	for _, r := range s.example.Refused {
		err := Review(t.Context(), s.service, DryRun(r)).Err
		if err == nil {
			continue // reported by examples
		}
		if err.Code < 400 || err.Code > 499 || err.Reason == "" || err.Message == "" {
			t.Errorf("got %+v, want a Status with a code from 400 to 499, reason and message", *err)
		}
	}
}

func (s *suite) idempotent(t *testing.T) {
	for _, r := range s.example.Admitted {
		r.DryRun = true
		first, err := s.service.Mutate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if first.Object == nil {
			continue
		}
		before := r.Object
		r.Object = first.Object
		again, err := s.service.Mutate(t.Context(), r)
		if err != nil {
			t.Errorf("the changed object is refused: %v", err)
		}
		if again.Object != nil && !sameJSON(again.Object, first.Object) {
			t.Errorf("%s\nbecomes %s\nand then %s", before, first.Object, again.Object)
		}
	}
}

func (s *suite) identity(t *testing.T) {
	for _, r := range s.all {
		r.DryRun = true
		before := bytes.Clone(r.Object)
		mutated, err := s.service.Mutate(t.Context(), r)
		if !bytes.Equal(before, r.Object) {
			t.Errorf("the service wrote to the object of the request: %s", before)
		}
		if err != nil || mutated.Object == nil {
			continue
		}
		was, is := identityOf(t, r.Object), identityOf(t, mutated.Object)
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%v became %v", was, is)
		}
	}
}

// identityOf returns the fields that say which object this is.
func identityOf(t *testing.T, object []byte) map[string]any {
	t.Helper()
	var o struct {
		APIVersion, Kind string
		Metadata         map[string]any
	}
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatalf("%v: %s", err, object)
	}
	identity := map[string]any{"apiVersion": o.APIVersion, "kind": o.Kind}
	for _, field := range []string{"name", "generateName", "namespace", "uid", "resourceVersion"} {
		identity[field] = o.Metadata[field]
	}
	return identity
}

func (s *suite) validates(t *testing.T) {
	for _, r := range s.all {
		response, err := s.service.Validate(t.Context(), DryRun(r))
		if response.Object != nil {
			t.Errorf("validating returned an object: %s", response.Object)
		}
		if f := failed(err); f != nil {
			t.Errorf("validating failed: %+v", *f)
		}
	}
}

func (s *suite) dryRuns(t *testing.T) {
	for _, r := range s.example.Admitted {
		if got := Review(t.Context(), s.service, DryRun(r)); got.Err != nil {
			t.Errorf("refused: %+v", *got.Err)
		}
	}
	for _, r := range s.example.Refused {
		if got := Review(t.Context(), s.service, DryRun(r)); got.Err == nil {
			t.Error("admitted")
		}
	}
}

func (s *suite) operations(t *testing.T) {
	for _, r := range s.all {
		object := r.Object
		if object == nil {
			object = r.OldObject
		}
		requests := []sdk.Request{DryRun(Create(object)), DryRun(Update(object, object)), DryRun(Delete(object)),
			DryRun(Connect(object, "proxy", map[string]any{"apiVersion": "v1", "kind": "ProxyOptions"}))}
		status := DryRun(Update(object, object))
		status.Subresource = "status"
		for _, request := range append(requests, status) {
			if got := Review(t.Context(), s.service, request); failed(got.Err) != nil {
				t.Errorf("%s of %s/%s failed: %+v", request.Operation, request.Resource, request.Subresource, *got.Err)
			}
		}
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// panicked reports whether the SDK caught a panic.
func panicked(err *services.Status) bool {
	return err != nil && strings.Contains(err.Message, "panicked")
}
