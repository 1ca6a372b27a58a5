package sdktest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/admission/sdk"
	"github.com/portico-platform/portico/services"
)

const (
	// hugeBytes is just below the largest object that the API accepts.
	hugeBytes = 3<<20 - 64<<10
	// hugeWithin bounds a review of an object of that size.
	hugeWithin = 10 * time.Second
	// endsWithin bounds how long a review runs after its deadline.
	endsWithin = 5 * time.Second
	// callers is the number of concurrent callers.
	callers = 16
)

// missing sends requests without the objects that their operations should have. The service
// may refuse or fail, but must not panic.
func (s *suite) missing(t *testing.T) {
	for _, r := range s.all {
		for _, operation := range []services.Operation{sdk.Create, sdk.Update, sdk.Delete, sdk.Connect, "OTHER", ""} {
			r.Operation, r.Object, r.OldObject, r.Options, r.DryRun = operation, nil, nil, nil, true
			if got := Review(t.Context(), s.service, r); panicked(got.Err) {
				t.Errorf("a %q of no object panics", operation)
			}
		}
	}
	s.still(t)
}

// malformed sends objects of the right kind and the wrong shape.
func (s *suite) malformed(t *testing.T) {
	for _, r := range s.all {
		for _, object := range []string{`{}`, `[]`, `7`, `null`, `{"metadata":7,"spec":"x"}`, `{"metadata":null,"spec":null}`, `{"spec":{"containers":{"a":1}}}`, `{"spec":{"containers":[null]}}`} {
			r.Object, r.DryRun = []byte(object), true
			if got := Review(t.Context(), s.service, r); panicked(got.Err) {
				t.Errorf("the object %s panics", object)
			}
		}
	}
	s.still(t)
}

// unknown sends objects of a type that the service cannot know. Which types a service
// reviews is the choice of whoever registers it, so it must not fail on others.
func (s *suite) unknown(t *testing.T) {
	widget := `{apiVersion: portico-contract.example.com/v1, kind: Widget, metadata: {name: w, namespace: default}, spec: {size: 1}}`
	for _, r := range []sdk.Request{Create(widget), Update(widget, widget), Delete(widget), Connect(widget, "tunnel", nil)} {
		if got := Review(t.Context(), s.service, DryRun(r)); got.Err != nil {
			t.Errorf("%s: %+v", r.Operation, *got.Err)
		} else if got.Changed {
			t.Errorf("%s: changed to %s", r.Operation, got.Object)
		}
	}
}

func (s *suite) huge(t *testing.T) {
	for _, r := range s.all {
		if r.Object == nil {
			continue
		}
		var object map[string]any
		if err := json.Unmarshal(r.Object, &object); err != nil {
			t.Fatal(err)
		}
		metadata, _ := object["metadata"].(map[string]any)
		if metadata == nil {
			continue
		}
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations == nil {
			annotations = map[string]any{}
			metadata["annotations"] = annotations
		}
		annotations["portico-contract"] = strings.Repeat("x", hugeBytes)
		r.Object, r.DryRun = encode(object), true
		start := time.Now()
		if got := Review(t.Context(), s.service, r); failed(got.Err) != nil {
			t.Errorf("failed: %.200s", got.Err.Message)
		}
		if took := time.Since(start); took > hugeWithin {
			t.Errorf("took %v", took)
		}
	}
}

func (s *suite) deadline(t *testing.T) {
	for _, r := range s.all {
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		s.ends(ctx, t, r)
		cancel()
	}
	s.still(t)
}

func (s *suite) cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range s.all {
		s.ends(ctx, t, r)
	}
	s.still(t)
}

// ends calls the service with a context that has ended and checks that the call ends too.
func (s *suite) ends(ctx context.Context, t *testing.T, r sdk.Request) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = Review(ctx, s.service, DryRun(r))
	}()
	late := time.NewTimer(endsWithin)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		t.Errorf("the review runs %v after its deadline", endsWithin)
	}
}

// concurrent sends all examples at once and expects the decisions that they get alone.
func (s *suite) concurrent(t *testing.T) {
	var running sync.WaitGroup
	for range callers {
		running.Go(func() { s.still(t) })
	}
	running.Wait()
}

// still checks that the examples are still decided as expected.
func (s *suite) still(t *testing.T) {
	t.Helper()
	for _, r := range s.example.Admitted {
		if got := Review(t.Context(), s.service, DryRun(r)); got.Err != nil {
			t.Errorf("refused: %+v", *got.Err)
		}
	}
	for _, r := range s.example.Refused {
		if got := Review(t.Context(), s.service, DryRun(r)); got.Err == nil || failed(got.Err) != nil {
			t.Errorf("not refused: %+v", got.Err)
		}
	}
}
