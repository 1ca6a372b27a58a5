package writes

import (
	"context"
	"net/http"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
)

// charging is an admission that charges each request when it is validated, and counts what is charged and
// not given back.
type charging struct {
	joined bool // Mutate validates too
	left   int
}

func (a *charging) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if !a.joined || !r.AndValidate {
		return services.AdmissionResponse{}, nil
	}
	a.left++
	return services.AdmissionResponse{Validated: true, Charge: []byte("bill")}, nil
}

func (a *charging) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.left++
	return services.AdmissionResponse{Charge: []byte("bill")}, nil
}

func (a *charging) Refund(ctx context.Context, charge []byte) error {
	if string(charge) == "bill" && ctx.Err() == nil {
		a.left--
	}
	return nil
}

func (a *charging) Joins(services.AdmissionRequest) bool { return a.joined }

// failing is a store whose writes fail.
type failing struct {
	services.Store
	err error
}

func (f *failing) Create(ctx context.Context, r services.CreateRequest) (services.Object, error) {
	if f.err != nil {
		return services.Object{}, f.err
	}
	return f.Store.Create(ctx, r)
}

func (f *failing) Update(ctx context.Context, r services.UpdateRequest) (services.Object, error) {
	if f.err != nil {
		return services.Object{}, f.err
	}
	return f.Store.Update(ctx, r)
}

// TestChargesAreGivenBack: what quotas are charged for an object that is not stored is given back, whatever
// the reason, unless it is not known whether the object is stored. Each step is charged once if it succeeds.
func TestChargesAreGivenBack(t *testing.T) {
	const maps, pods = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/pods"
	named := func(name string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"}}`
	}
	unavailable := &services.Status{Code: http.StatusServiceUnavailable, Reason: services.ReasonServiceUnavailable}
	unknown := &services.Status{Code: http.StatusGatewayTimeout, Reason: services.ReasonTimeout}
	for _, joined := range []bool{false, true} {
		store := &failing{Store: fake.New(t).Store()}
		c := newClient(t, store, "10.0.0.0/24")
		a := &charging{joined: joined}
		c.handlers.Admission = a
		for _, x := range []struct {
			name, method, path, body string
			fails                    error
			code                     int32 // of the failure; 0 for none
			left                     int
		}{
			{"a create", "POST", maps, named("a"), nil, 0, 1},
			{"one that exists", "POST", maps, named("a"), nil, 409, 0},
			{"one with a resourceVersion", "POST", maps, `{"metadata":{"name":"v","resourceVersion":"7"}}`, nil, 500, 0},
			{"an invalid one", "POST", maps, `{"metadata":{"name":"_"}}`, nil, 422, 0},
			{"a Service", "POST", serviceList, service("s", `,"type":"NodePort","clusterIP":"10.0.0.9"`), nil, 0, 1},
			{"one outside the range", "POST", serviceList, service("t", `,"clusterIP":"10.9.9.9"`), nil, 422, 0},
			{"one with an address that is taken", "POST", serviceList, service("t", `,"clusterIP":"10.0.0.9"`), nil, 422, 0},
			{"one with a port that is out of range", "POST", serviceList, `{"metadata":{"name":"t"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":9}]}}`, nil, 422, 0},
			{"one that exists", "POST", serviceList, service("s", ""), nil, 409, 0},
			{"a store that is away", "POST", maps, named("b"), unavailable, 503, 0},
			{"a store that may have stored", "POST", maps, named("b"), unknown, 504, 1},
			{"a store that refuses", "POST", maps, named("b"), services.TooLarge("too large"), 413, 0},
			{"an apply that creates", "APPLY", maps + "/c?fieldManager=m", named("c"), nil, 0, 1},
			{"one that does not", "APPLY", maps + "/d?fieldManager=m", named("d"), unavailable, 503, 0},
			{"an update of another revision", "PUT", maps + "/a", `{"metadata":{"name":"a","resourceVersion":"1"},"data":{"k":"v"}}`, nil, 409, 0},
			{"an update", "PUT", maps + "/a", `{"metadata":{"name":"a"},"data":{"k":"v"}}`, nil, 0, 1},
			{"a pod", "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, nil, 0, 1},
			{"one that exists", "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, nil, 409, 0},
		} {
			a.left, store.err = 0, x.fails
			_, err := c.do(x.method, x.path, x.body)
			if (err == nil) != (x.code == 0) || err != nil && int32(services.AsStatus(err).Code) != x.code {
				t.Errorf("%s: %v, want %d", x.name, err, x.code)
			}
			if a.left != x.left {
				t.Errorf("%s, with both phases in one call: %v: charged %d, want %d", x.name, joined, a.left, x.left)
			}
		}
	}
}
