package rpc_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/services/rpc/porticov1"
)

// echo implements every contract: it records the request and returns the configured
// response.
type echo struct {
	request, answer any
	err             error
}

func answer[T any](e *echo, request any) (T, error) {
	e.request = request
	var none T
	if e.err != nil {
		return none, e.err
	}
	return e.answer.(T), nil
}

func (e *echo) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	return answer[services.Object](e, r)
}

func (e *echo) List(_ context.Context, r services.ListRequest) (services.Page, error) {
	return answer[services.Page](e, r)
}

func (e *echo) Revision(context.Context, resource.GroupResource) (int64, error) {
	return answer[int64](e, nil)
}

func (e *echo) Create(_ context.Context, r services.CreateRequest) (services.Object, error) {
	return answer[services.Object](e, r)
}

func (e *echo) Update(_ context.Context, r services.UpdateRequest) (services.Object, error) {
	return answer[services.Object](e, r)
}

func (e *echo) Delete(_ context.Context, r services.DeleteRequest) (services.Object, error) {
	return answer[services.Object](e, r)
}

func (e *echo) Replay(_ context.Context, r services.ReplayRequest) (services.Replay, error) {
	return answer[services.Replay](e, r)
}

func (e *echo) Keys(_ context.Context, r services.KeysRequest) (services.Keys, error) {
	return answer[services.Keys](e, r)
}

func (e *echo) Authenticate(_ context.Context, r services.Credentials) (services.Authentication, error) {
	return answer[services.Authentication](e, r)
}

func (e *echo) Authorize(_ context.Context, r services.Attributes) (services.Decision, error) {
	return answer[services.Decision](e, r)
}

func (e *echo) Rules(_ context.Context, r services.RulesRequest) (services.Rules, error) {
	return answer[services.Rules](e, r)
}

func (e *echo) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return answer[services.AdmissionResponse](e, r)
}

func (e *echo) Validate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return answer[services.AdmissionResponse](e, r)
}

func (e *echo) Refund(_ context.Context, charge []byte) error {
	_, err := answer[struct{}](e, charge)
	return err
}

func (e *echo) AuthorizeBatch(_ context.Context, r []services.Attributes) ([]services.AuthzResult, error) {
	return answer[[]services.AuthzResult](e, r)
}

func (e *echo) MutateBatch(_ context.Context, r []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return answer[[]services.AdmissionResult](e, r)
}

func (e *echo) ValidateBatch(_ context.Context, r []services.AdmissionRequest) ([]services.AdmissionResult, error) {
	return answer[[]services.AdmissionResult](e, r)
}

// wantRoundTrip checks that a method transports every field of its request and response.
func wantRoundTrip[Request, Answer any](t *testing.T, e *echo, call func(context.Context, Request) (Answer, error), adjust ...func(*Answer)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var request Request
	var want Answer
	fill(reflect.ValueOf(&request).Elem())
	fill(reflect.ValueOf(&want).Elem())
	for _, f := range adjust {
		f(&want)
	}
	e.answer = want
	got, err := call(ctx, request)
	if err != nil {
		t.Fatalf("%T: %v", request, err)
	}
	if !reflect.DeepEqual(e.request, request) {
		t.Errorf("the server received\n%+v, want\n%+v", e.request, request)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the client received\n%+v, want\n%+v", got, want)
	}
}

// fill sets every field to a non-zero value, except trees.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1<<30, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]any]() {
			return // trees stay in their process
		}
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("text of a " + v.Type().Name())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(3) // valid for all enumerations
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1 << 30)
	case reflect.Interface: // the converter stays with the caller; whoever adjusts the answer sets an error
	default:
		panic("cannot fill a " + v.Type().String())
	}
}

func TestStoreCarriesEveryField(t *testing.T) {
	e := &echo{}
	store := contracttest.Remote[services.Store](t, rpc.RegisterStore, rpc.NewStore, e)
	wantRoundTrip(t, e, store.Get)
	wantRoundTrip(t, e, store.List)
	wantRoundTrip(t, e, store.Create)
	wantRoundTrip(t, e, store.Update)
	wantRoundTrip(t, e, store.Delete)
	e.answer = int64(42)
	if got, err := store.Revision(t.Context(), resource.GroupResource{}); got != 42 || err != nil {
		t.Errorf("got revision %d, %v", got, err)
	}
}

func TestWatchHubCarriesEveryField(t *testing.T) {
	e := &echo{}
	hub := contracttest.Remote[services.WatchHub](t, rpc.RegisterWatchHub, rpc.NewWatchHub, e)
	wantRoundTrip(t, e, hub.Replay)
	wantRoundTrip(t, e, hub.Keys)
}

func TestAuthnCarriesEveryField(t *testing.T) {
	e := &echo{}
	wantRoundTrip(t, e, contracttest.Remote[services.Authn](t, rpc.RegisterAuthn, rpc.NewAuthn, e).Authenticate)
}

func TestAuthzCarriesEveryField(t *testing.T) {
	e := &echo{}
	authz := contracttest.Remote[services.Authz](t, rpc.RegisterAuthz, rpc.NewAuthz, e)
	wantRoundTrip(t, e, authz.Authorize, func(d *services.Decision) { d.Denied = false })
	wantRoundTrip(t, e, authz.Rules)
}

// TestAuthzBatches: users, requests and results keep their order and every field; a decision that
// contradicts itself is an error of its own; an answer with other results than requests is one of all.
func TestAuthzBatches(t *testing.T) {
	e := &echo{}
	batch, ok := contracttest.Remote[services.Authz](t, rpc.RegisterAuthz, rpc.NewAuthz, e).(services.AuthzBatch)
	if !ok {
		t.Fatal("the client knows no batches")
	}
	var a services.Attributes
	fill(reflect.ValueOf(&a).Elem())
	other := a
	other.Name, other.User.Groups = "other", []string{"g"}
	requests := []services.Attributes{a, a, other, a}
	var allowed services.AuthzResult
	fill(reflect.ValueOf(&allowed.Decision).Elem())
	allowed.Denied = false
	both := allowed
	both.Denied = true
	failed := services.AuthzResult{Err: services.Unavailable("away")}
	e.answer = []services.AuthzResult{allowed, failed, allowed, both}
	results, err := batch.AuthorizeBatch(t.Context(), requests)
	if err != nil || !reflect.DeepEqual(e.request, requests) {
		t.Fatalf("%v: got the requests %+v", err, e.request)
	}
	if !reflect.DeepEqual(results[:3], []services.AuthzResult{allowed, failed, allowed}) {
		t.Errorf("got %+v", results)
	}
	wantReason(t, results[3].Err, services.ReasonInternalError)
	_, err = batch.AuthorizeBatch(t.Context(), requests[:3])
	wantReason(t, err, services.ReasonInternalError)
}

// explaining is an admission that rejects requests with warnings and annotations.
type explaining struct{ services.AdmissionResponse }

func (e explaining) Mutate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	return e.AdmissionResponse, services.Forbidden("", "pods", "a", "no")
}

func (e explaining) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	return e.Mutate(ctx, r)
}

// TestRefusalsOfAdmissionKeepTheirNotes: warnings and annotations are transported with a
// refusal.
func TestRefusalsOfAdmissionKeepTheirNotes(t *testing.T) {
	for _, notes := range []services.AdmissionResponse{{}, {Warnings: []string{"a", "b"}}, {AuditAnnotations: map[string]string{"k": "v"}}} {
		admission := contracttest.Remote[services.Admission](t, rpc.RegisterAdmission, rpc.NewAdmission, explaining{notes})
		for _, ask := range []func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){admission.Mutate, admission.Validate} {
			got, err := ask(t.Context(), services.AdmissionRequest{})
			if s := services.AsStatus(err); s == nil || s.Code != 403 || s.Details == nil || s.Details.Name != "a" || !reflect.DeepEqual(got, notes) {
				t.Errorf("%+v, %+v, want the Forbidden with %+v", got, err, notes)
			}
		}
	}
}

func TestAdmissionCarriesEveryField(t *testing.T) {
	e := &echo{}
	admission := contracttest.Remote[services.Admission](t, rpc.RegisterAdmission, rpc.NewAdmission, e)
	wantRoundTrip(t, e, admission.Mutate)
	wantRoundTrip(t, e, admission.Validate, func(r *services.AdmissionResponse) { r.Object = nil })
}

func TestRefundsCarryTheCharge(t *testing.T) {
	e := &echo{answer: struct{}{}}
	refunds := contracttest.Remote[services.Admission](t, rpc.RegisterAdmission, rpc.NewAdmission, e).(services.AdmissionRefunds)
	if err := refunds.Refund(t.Context(), []byte("bill")); err != nil || !reflect.DeepEqual(e.request, []byte("bill")) {
		t.Errorf("got %q, %v", e.request, err)
	}
	e.err = services.BadRequest("no")
	wantReason(t, refunds.Refund(t.Context(), nil), services.ReasonBadRequest)
}

func TestAdmissionBatchesCarryEveryField(t *testing.T) {
	e := &echo{}
	batch := contracttest.Remote[services.AdmissionBatch](t, rpc.RegisterAdmissionBatch, rpc.NewAdmissionBatch, e)
	var admitted services.AdmissionResult
	fill(reflect.ValueOf(&admitted.Response).Elem())
	admitted.UID = "a"
	refused := services.AdmissionResult{UID: "b", Err: services.Forbidden("", "pods", "b", "no")}
	whole := func(r *[]services.AdmissionResult) { *r = []services.AdmissionResult{admitted, refused} }
	wantRoundTrip(t, e, batch.MutateBatch, whole)
	admitted.Response.Object = nil
	wantRoundTrip(t, e, batch.ValidateBatch, whole)
	admitted.Response.Object = []byte("{}")
	e.answer = []services.AdmissionResult{admitted}
	results, err := batch.ValidateBatch(t.Context(), nil)
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	wantReason(t, results[0].Err, services.ReasonInternalError)
}

func TestAnswersThatBreakTheContractAreFaults(t *testing.T) {
	e := &echo{}
	store := contracttest.Remote[services.Store](t, rpc.RegisterStore, rpc.NewStore, e)
	e.answer = services.Object{Key: resource.Key{Name: "other"}}
	_, err := store.Get(t.Context(), services.GetRequest{Key: resource.Key{Name: "asked"}})
	wantReason(t, err, services.ReasonInternalError)

	hub := contracttest.Remote[services.WatchHub](t, rpc.RegisterWatchHub, rpc.NewWatchHub, e)
	e.answer = services.Replay{Changes: []services.Change{{Type: 99}}}
	_, err = hub.Replay(t.Context(), services.ReplayRequest{})
	wantReason(t, err, services.ReasonInternalError)

	_, err = store.List(t.Context(), services.ListRequest{Read: services.Read{Mode: 77}})
	wantReason(t, err, services.ReasonBadRequest)
}

func TestErrorsCrossTheWire(t *testing.T) {
	e := &echo{}
	store := contracttest.Remote[services.Store](t, rpc.RegisterStore, rpc.NewStore, e)
	var full services.Status
	fill(reflect.ValueOf(&full).Elem())
	for _, want := range []*services.Status{
		&full,
		{Code: 418, Reason: "Teapot", Message: "no details"},
		services.NotFound("apps", "deployments", "web"),
		services.ConflictModified("", "pods", "web"),
		services.Expired("the revision %d is gone", 3),
		services.FutureRevision(7, 5),
		services.TooLarge("too large"),
		services.Unauthorized(""),
		services.Forbidden("", "pods", "", "no"),
	} {
		e.err = want
		_, err := store.Get(t.Context(), services.GetRequest{})
		if got := services.AsStatus(err); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	e.err = errors.New("a fault")
	_, err := store.Get(t.Context(), services.GetRequest{})
	if got, want := services.AsStatus(err), services.AsStatus(e.err); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestCallersAreKnownForEveryContract(t *testing.T) {
	callers := services.Callers()
	known := porticov1.File_portico_proto.Services()
	rows := map[string]bool{}
	for i := range known.Len() {
		contract := known.Get(i)
		name := string(contract.Name())
		rows[name] = true
		for j := range contract.Methods().Len() {
			method := name + "/" + string(contract.Methods().Get(j).Name())
			rows[method] = true
			if len(callers[name]) == 0 && len(callers[method]) == 0 {
				t.Errorf("nobody may call %s: give it a row in services.Callers", method)
			}
		}
	}
	for row := range callers {
		if !rows[row] {
			t.Errorf("services.Callers has a row for %s, which portico.proto does not have", row)
		}
	}
}

func wantReason(t *testing.T, err error, reason string) {
	t.Helper()
	if !services.IsReason(err, reason) {
		t.Errorf("got %v, want reason %s", err, reason)
	}
}

var (
	_ services.Store     = (*echo)(nil)
	_ services.WatchHub  = (*echo)(nil)
	_ services.Authn     = (*echo)(nil)
	_ services.Authz     = (*echo)(nil)
	_ services.Admission = (*echo)(nil)

	_ services.AdmissionBatch   = (*echo)(nil)
	_ services.AdmissionRefunds = (*echo)(nil)
)
