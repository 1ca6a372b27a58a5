package admit

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
)

// admission returns the configured response, and records the requests.
type admission struct {
	mu       sync.Mutex
	requests []services.AdmissionRequest
	answer   services.AdmissionResponse
	err      error
}

func (a *admission) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	return a.answer, a.err
}

func (a *admission) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return a.Mutate(ctx, r)
}

func newRequest(t *testing.T) *request.Request {
	t.Helper()
	e := handlertest.Engine(t)
	pods, ok := e.Types.Lookup("", "v1", "pods")
	if !ok {
		t.Fatal("there are no pods")
	}
	return &request.Request{Engine: e, Verb: "patch", Type: pods, Subresource: pods.Subresources["eviction"], Namespace: "here", Name: "a",
		User: services.UserInfo{Name: "jane"}, Audit: &audit.Record{}}
}

// TestQuestions checks the AdmissionRequests of each kind of call.
func TestQuestions(t *testing.T) {
	r := newRequest(t)
	seconds := int64(5)
	for name, x := range map[string]struct {
		call      func(services.Admission) *Call
		operation services.Operation
		options   string
		dryRun    bool
	}{
		"create": {func(a services.Admission) *Call {
			return Write(a, r, request.WriteOptions{DryRun: true, Manager: "m", Force: true})
		},
			services.OperationCreate, `{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"],"fieldManager":"m"}`, true},
		"update by patch": {func(a services.Admission) *Call { return Write(a, r, request.WriteOptions{}) },
			services.OperationUpdate, `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`, false},
		"delete": {func(a services.Admission) *Call {
			return Delete(a, r, &metav1.DeleteOptions{GracePeriodSeconds: &seconds, DryRun: []string{"All"}})
		}, services.OperationDelete, `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","gracePeriodSeconds":5,"dryRun":["All"]}`, true},
		"connect": {func(a services.Admission) *Call { return Connect(a, r) }, services.OperationConnect, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{}
			body := &catalogue.Type{Group: "policy", Version: "v1", Kind: "Eviction"}
			owners := []services.OwnerType{{Kind: "Job"}}
			review := x.call(a).Review(Subject{Operation: x.operation, Type: body, Namespace: "here", Name: "a", Old: []byte("{}")})
			if _, err := review.Mutate(t.Context(), Object{JSON: []byte(`{"a":1}`), Owners: owners}); err != nil {
				t.Fatal(err)
			}
			if err := review.Validate(t.Context(), Object{JSON: []byte(`{"a":2}`)}); err != nil {
				t.Fatal(err)
			}
			want := services.AdmissionRequest{Operation: x.operation, Version: "v1", Resource: "pods", Subresource: "eviction",
				Kind: "Eviction", KindGroup: "policy", KindVersion: "v1", Namespace: "here", Name: "a", User: r.User,
				Object: []byte(`{"a":1}`), OldObject: []byte("{}"), Options: json.RawMessage(x.options), DryRun: x.dryRun, OwnerTypes: owners,
				Served: []services.ServedType{{Version: "v1", Resource: "pods", KindGroup: "policy", KindVersion: "v1beta1", Kind: "Eviction"}}}
			if x.options == "" {
				want.Options = nil
			}
			if len(a.requests) != 2 || a.requests[0].UID == "" || a.requests[0].UID == a.requests[1].UID {
				t.Fatalf("requests %+v", a.requests)
			}
			want.UID, want.Converter = a.requests[0].UID, converter{r}
			if !reflect.DeepEqual(a.requests[0], want) {
				t.Errorf("requests %+v, want %+v", a.requests[0], want)
			}
			if string(a.requests[1].Object) != `{"a":2}` || a.requests[1].OwnerTypes != nil {
				t.Errorf("requests to validate %+v", a.requests[1])
			}
		})
	}
}

// TestNotes: warnings and annotations are collected also if admission denies the request,
// and the reviews of one call share them.
func TestNotes(t *testing.T) {
	r := newRequest(t)
	a := &admission{answer: services.AdmissionResponse{Warnings: []string{"careful"}, AuditAnnotations: map[string]string{"k": "v"}},
		err: services.Forbidden("", "pods", "a", "no")}
	call := Write(a, r, request.WriteOptions{})
	call.Warn("first")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			review := call.Review(Subject{Operation: services.OperationUpdate, Type: r.Type})
			if err := review.Validate(t.Context(), Object{}); !services.IsReason(err, services.ReasonForbidden) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	h := http.Header{}
	call.SendNotes(h)
	if got := h.Values("Warning"); !slices.Equal(got, []string{`299 - "first"`, `299 - "careful"`}) {
		t.Errorf("warnings: %q", got)
	}
	if got := r.Audit.Annotations(); got["k"] != "v" {
		t.Errorf("annotations: %v", got)
	}
}

// TestHeaders: a request names services to skip, and gets timings if it requests them.
func TestHeaders(t *testing.T) {
	r := newRequest(t)
	r.Request = &http.Request{Header: http.Header{"Portico-Bypass-Admission": {"a, b", "c,," + strings.Repeat("d,", 100)}}}
	a := &admission{answer: services.AdmissionResponse{Timings: []services.Timing{{Name: "a.example", Took: 1500 * time.Microsecond}}}}
	for _, requested := range []bool{false, true} {
		if requested {
			r.Header.Set("Portico-Server-Timing", "true")
		}
		call := Write(a, r, request.WriteOptions{})
		if err := call.Review(Subject{Operation: services.OperationUpdate, Type: r.Type}).Validate(t.Context(), Object{}); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		call.SendNotes(h)
		got := h.Values("Server-Timing")
		if !requested && len(got) > 0 || requested && (len(got) != 2 || !strings.HasPrefix(got[0], "admission;dur=") || got[1] != `admission-service;desc="a.example";dur=1.500`) {
			t.Errorf("requested %v: %q", requested, got)
		}
	}
	if names := a.requests[0].Bypass; len(names) != 16 || !slices.Equal(names[:4], []string{"a", "b", "c", "d"}) {
		t.Errorf("to skip: %q", names)
	}
}

// TestExempt: the review of an exempt call changes nothing and never fails.
func TestExempt(t *testing.T) {
	call := Exempt(newRequest(t))
	review := call.Review(Subject{Operation: services.OperationCreate})
	changed, err := review.Mutate(t.Context(), Object{JSON: []byte("{}")})
	if call.Asks() || changed != nil || err != nil || review.Validate(t.Context(), Object{}) != nil {
		t.Errorf("%v, %s, %v", call.Asks(), changed, err)
	}
}

var _ services.Admission = (*admission)(nil)
