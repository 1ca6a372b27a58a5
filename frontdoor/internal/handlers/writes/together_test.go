package writes

import (
	"context"
	"slices"
	"testing"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/tree"
)

// jointly is an admission that validates in the call of Mutate and records the calls.
type jointly struct {
	calls   []string
	changed []byte // by Mutate
	refusal error  // of the validating half
}

func (*jointly) Joins(services.AdmissionRequest) bool { return true }

func (a *jointly) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	if a.changed != nil || !r.AndValidate {
		a.calls = append(a.calls, "mutate")
		return services.AdmissionResponse{Object: a.changed}, nil
	}
	a.calls = append(a.calls, "both")
	return services.AdmissionResponse{Validated: true}, a.refusal
}

func (a *jointly) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.calls = append(a.calls, "validate")
	return services.AdmissionResponse{}, a.refusal
}

// TestOneCallOfAdmission: admission validates in the call of Mutate only what the rules of the
// type accept, so that nothing is charged to a quota for an invalid object; what mutating
// admission changes is validated afterwards, by the rules first.
func TestOneCallOfAdmission(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	const maps = "/api/v1/namespaces/a/configmaps"
	const invalid = `{"metadata":{"name":"x"},"data":{"not a key":"1"}}`
	admission := &jointly{}
	c.handlers.Admission = admission
	calls := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(admission.calls, want) {
			t.Errorf("%s: admission was called for %v, want %v", what, admission.calls, want)
		}
		admission.calls = nil
	}
	c.must("POST", maps, `{"metadata":{"name":"a"}}`)
	calls("a create", "both")
	c.must("PUT", maps+"/a", `{"metadata":{"name":"a"},"data":{"b":"c"}}`)
	calls("an update", "both")
	c.must("DELETE", maps+"/a", "")
	calls("a deletion", "both")
	c.refused(services.ReasonInvalid, "POST", maps, invalid)
	calls("an invalid object", "mutate")

	admission.refusal = services.Forbidden("", "configmaps", "x", "no")
	c.refused(services.ReasonForbidden, "POST", maps, `{"metadata":{"name":"x"}}`)
	calls("a refusal", "both")

	admission.refusal, admission.changed = nil, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"},"data":{"fine":"1"}}`)
	made := c.must("POST", maps, `{"metadata":{"name":"x"}}`)
	calls("a change", "mutate", "validate")
	if data, _ := made["data"].(map[string]any); data["fine"] != "1" {
		t.Errorf("got %v", made)
	}
	admission.changed = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","namespace":"a"},"data":{"not a key":"1"}}`)
	c.refused(services.ReasonInvalid, "POST", maps, `{"metadata":{"name":"y"}}`)
	calls("a change that breaks the rules", "mutate")
}

// early is an admission that validates what it returns in the call of Mutate, unless it refuses it.
type early struct {
	jointly
	change func(object map[string]any) // nil for none
	prefix string                      // of the changed object
}

func (*early) Joins(services.AdmissionRequest) bool { return false }

func (a *early) Mutate(_ context.Context, r services.AdmissionRequest) (got services.AdmissionResponse, err error) {
	a.calls = append(a.calls, "early")
	if a.change != nil {
		object, err := tree.Decode(r.Object)
		if err != nil {
			return got, err
		}
		a.change(object)
		encoded, err := tree.Encode(object)
		if err != nil {
			return got, err
		}
		got.Object = append([]byte(a.prefix), encoded...)
	}
	got.Validated = r.ValidateEarly && a.refusal == nil
	return got, nil
}

// TestValidatedEarly: what mutating admission returns is validated in the same call, and again only
// if something else has changed the object meanwhile, or it was not accepted. The rules of the type
// come first.
func TestValidatedEarly(t *testing.T) {
	c := newClient(t, fake.New(t).Store(), "10.0.0.0/24")
	const maps, body = "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"a"},"data":{"b":"c"}}`
	admission := &early{}
	c.handlers.Admission = admission
	calls := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(admission.calls, want) {
			t.Errorf("%s: admission was called for %v, want %v", what, admission.calls, want)
		}
		admission.calls = nil
	}
	sets := func(value string) func(map[string]any) {
		return func(o map[string]any) { tree.Object(o, "data")["b"] = value }
	}
	c.must("POST", maps, body)
	calls("no change", "early")
	admission.change = sets("d")
	if got := c.must("PUT", maps+"/a", body); tree.Text(got, "data", "b") != "d" {
		t.Errorf("got %v", got)
	}
	calls("a change", "early")
	admission.change = func(o map[string]any) { tree.Object(o, "metadata")["uid"] = "another" }
	c.refused(services.ReasonInvalid, "PUT", maps+"/a", body)
	calls("another identity", "early")

	admission.change, admission.prefix = sets("e"), " "
	c.must("PUT", maps+"/a", body)
	calls("what is stored is not what was validated", "early", "validate")
	admission.change, admission.prefix = func(o map[string]any) { o["immutable"] = nil }, ""
	c.must("PUT", maps+"/a", body)
	calls("the service drops a part of the change", "early", "validate")
	admission.change = func(o map[string]any) {
		tree.Object(o, "metadata")["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": "1"}}
	}
	c.must("PUT", maps+"/a", body)
	calls("admission did not know the type of the owner", "early", "validate")

	admission.change = func(o map[string]any) { tree.Object(o, "data")["not a key"] = "1" }
	c.refused(services.ReasonInvalid, "PUT", maps+"/a", body)
	calls("a change that breaks the rules", "early")
	admission.change, admission.refusal = sets("f"), services.Forbidden("", "configmaps", "a", "no")
	c.refused(services.ReasonForbidden, "PUT", maps+"/a", body)
	calls("a refusal", "early", "validate")
}
