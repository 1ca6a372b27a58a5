package rpc_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/contracttest"
	"github.com/portico-platform/portico/services/rpc"
)

// converting is an admission that has the object converted, and the options merged into it.
type converting struct{ calls int }

func (c *converting) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	c.calls++
	if r.Converter == nil {
		return services.AdmissionResponse{}, services.ErrNoConverter
	}
	object := r.Object
	for _, to := range r.Served {
		var err error
		if object, err = r.Converter.Convert(ctx, object, to); err != nil {
			return services.AdmissionResponse{Warnings: []string{"not converted"}}, err
		}
	}
	if len(r.Options) == 0 {
		return services.AdmissionResponse{Object: object}, nil
	}
	object, err := r.Converter.Merge(ctx, object, r.Options, r.Served[0])
	return services.AdmissionResponse{Object: object}, err
}

func (c *converting) Validate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	answer, err := c.Mutate(ctx, r)
	answer.Object = nil
	return answer, err
}

// appending is a converter that appends the version.
type appending struct{ err error }

func (a appending) Convert(_ context.Context, object []byte, to services.ServedType) ([]byte, error) {
	return append(append([]byte{}, object...), to.Version...), a.err
}

func (a appending) Merge(_ context.Context, object, configuration []byte, of services.ServedType) ([]byte, error) {
	return []byte(string(object) + "+" + string(configuration) + "@" + of.Version), nil
}

// TestConversionsOfReviews: over gRPC, admission has objects converted by the caller, and only a
// request that needs it is sent twice.
func TestConversionsOfReviews(t *testing.T) {
	impl := &converting{}
	admission := contracttest.Remote[services.Admission](t, rpc.RegisterAdmission, rpc.NewAdmission, impl)
	request := services.AdmissionRequest{Object: []byte("x"), Served: []services.ServedType{{Version: "a"}, {Version: "b"}}, Converter: appending{}}
	got, err := admission.Mutate(t.Context(), request)
	if err != nil || string(got.Object) != "xab" || impl.calls != 2 {
		t.Errorf("%s, %v, %d calls", got.Object, err, impl.calls)
	}
	if got, err = admission.Validate(t.Context(), request); err != nil || got.Object != nil || impl.calls != 4 {
		t.Errorf("%s, %v, %d calls", got.Object, err, impl.calls)
	}
	request.Options = []byte("c")
	if got, err = admission.Mutate(t.Context(), request); err != nil || string(got.Object) != "xab+c@a" {
		t.Errorf("merged: %s, %v", got.Object, err)
	}
	request.Options = nil
	full := services.AsStatus(services.Invalid("apps", "Deployment", "web", []services.StatusCause{{Field: "spec"}}))
	request.Converter = appending{err: full}
	for _, ask := range []func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){admission.Mutate, admission.Validate} {
		if got, err = ask(t.Context(), request); !reflect.DeepEqual(services.AsStatus(err), full) || len(got.Warnings) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	request.Converter = nil
	if _, err = admission.Mutate(t.Context(), request); err == nil {
		t.Error("there is no converter, and no error")
	}
}

// TestReviewsEndWithTheirCaller: a caller that gives up during a conversion ends the review.
func TestReviewsEndWithTheirCaller(t *testing.T) {
	admission := contracttest.Remote[services.Admission](t, rpc.RegisterAdmission, rpc.NewAdmission, &converting{})
	ctx, cancel := context.WithCancel(t.Context())
	request := services.AdmissionRequest{Served: []services.ServedType{{}, {}}, Converter: leaving{cancel}}
	if _, err := admission.Mutate(ctx, request); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// leaving is a converter that ends the request.
type leaving struct{ cancel context.CancelFunc }

func (l leaving) Merge(ctx context.Context, _, _ []byte, of services.ServedType) ([]byte, error) {
	return l.Convert(ctx, nil, of)
}

func (l leaving) Convert(ctx context.Context, _ []byte, _ services.ServedType) ([]byte, error) {
	l.cancel()
	return nil, ctx.Err()
}
