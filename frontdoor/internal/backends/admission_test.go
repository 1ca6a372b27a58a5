package backends

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/changes"
	"github.com/portico-platform/portico/services/resource"
)

// reviewing is an admission that counts the calls.
type reviewing struct {
	response services.AdmissionResponse
	calls    int
}

func (a *reviewing) Mutate(_ context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.calls++
	response := a.response
	response.Validated = r.AndValidate && response.Object == nil
	return response, nil
}

func (a *reviewing) Validate(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error) {
	a.calls++
	return services.AdmissionResponse{}, nil
}

// nowhere is an unchangedIn for which every namespace has changed.
func nowhere(string, int64) bool { return false }

// TestAdmission: admission is not called about requests of a kind that does not concern it,
// until a configuration of webhooks changes or the lifetime of that is over, and is called
// about all others.
func TestAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := &reviewing{}
		newest := int64(5) // of the changes that the front door knows
		a := NewAdmission(real, func(revision int64) bool { return revision > 0 && newest <= revision }, nowhere)
		update := services.AdmissionRequest{Operation: services.OperationUpdate, Version: "v1", Resource: "configmaps", Namespace: "a", Name: "x"}
		review := func(what string, r services.AdmissionRequest, calls int) {
			t.Helper()
			before := real.calls
			if _, err := a.Mutate(t.Context(), r); err != nil {
				t.Error(err)
			}
			if _, err := a.Validate(t.Context(), r); err != nil {
				t.Error(err)
			}
			if n := real.calls - before; n != calls {
				t.Errorf("%s: %d calls, want %d", what, n, calls)
			}
		}
		review("it may be concerned", update, 2)
		review("it may be concerned, again", update, 2)
		real.response.Unconcerned = 5
		review("it says that it is not", update, 1) // Validate is not called any more
		review("it is not concerned", update, 0)
		for what, change := range map[string]func(*services.AdmissionRequest){
			"another name and namespace": func(r *services.AdmissionRequest) { r.Name, r.Namespace = "y", "b" },
			"another user":               func(r *services.AdmissionRequest) { r.User.Name = "joe" },
			"a dry run":                  func(r *services.AdmissionRequest) { r.DryRun = true },
		} {
			other := update
			change(&other)
			review(what, other, 0)
		}
		for what, change := range map[string]func(*services.AdmissionRequest){
			"another operation": func(r *services.AdmissionRequest) { r.Operation = services.OperationDelete },
			"another group":     func(r *services.AdmissionRequest) { r.Group = "g" },
			"another version":   func(r *services.AdmissionRequest) { r.Version = "v2" },
			"another resource":  func(r *services.AdmissionRequest) { r.Resource = "secrets" },
			"a subresource":     func(r *services.AdmissionRequest) { r.Subresource = "status" },
			"another scope":     func(r *services.AdmissionRequest) { r.Namespace = "" },
		} {
			other := update
			change(&other)
			review(what, other, 1)
		}
		newest = 6
		review("a webhook was configured", update, 2) // admission does not know it yet
		real.response.Unconcerned = 0
		review("a webhook is concerned", update, 2)
		real.response.Unconcerned = 6
		review("it is removed", update, 1)
		review("it is gone", update, 0)
		<-time.After(unconcernedLifetime) // of the test's own clock
		real.response.Unconcerned = 0
		review("admission has restarted with another plugin", update, 2)
	})
}

// TestJoins: both halves are one call unless admission changes objects of the kind.
func TestJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := &reviewing{}
		a := NewAdmission(real, func(int64) bool { return true }, nowhere)
		create := services.AdmissionRequest{Operation: services.OperationCreate, Resource: "pods", Namespace: "a", AndValidate: true}
		mutate := func() services.AdmissionResponse {
			t.Helper()
			got, err := a.Mutate(t.Context(), create)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if !a.Joins(create) || !mutate().Validated {
			t.Error("not joined at first")
		}
		real.response.Object = []byte("{}")
		if mutate().Validated || a.Joins(create) {
			t.Error("joined although the object is changed")
		}
		<-time.After(changesLifetime + 1)
		if !a.Joins(create) {
			t.Error("never joined again")
		}
		real.response = services.AdmissionResponse{Unconcerned: 1}
		mutate()
		if a.Joins(create) || !mutate().Validated {
			t.Error("a review that is not needed is joined, or not complete")
		}
		if create.AndValidate, create.ValidateEarly = false, true; !mutate().Validated {
			t.Error("a review that is not needed is not complete, if it validates early")
		}
	})
}

// TestAdmissionOfNamespaces: admission is not called about requests that do not concern it in their
// namespace, until something changes there, and is called about those in others.
func TestAdmissionOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		real := &reviewing{response: services.AdmissionResponse{UnconcernedHere: 5}}
		configured := int64(5)
		heads := newResidents(changes.NewHeads(changes.Source{}, nil))
		following := true
		a := NewAdmission(real, func(revision int64) bool { return configured <= revision }, func(namespace string, since int64) bool {
			return following && heads.since(namespace) <= since
		})
		changed := func(namespace, name string, revision int64) {
			heads.observe(revision, []services.Change{{Object: services.Object{Key: resource.Key{Namespace: namespace, Name: name}, Revision: revision}}})
		}
		create := func(what, namespace string, calls int) {
			t.Helper()
			r := services.AdmissionRequest{Operation: services.OperationCreate, Version: "v1", Resource: "configmaps", Namespace: namespace, AndValidate: true}
			before := real.calls
			if got, err := a.Mutate(t.Context(), r); err != nil || !got.Validated {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
			if _, err := a.Validate(t.Context(), r); err != nil {
				t.Error(err)
			}
			if n := real.calls - before; n != calls {
				t.Errorf("%s: %d calls, want %d", what, n, calls)
			}
		}
		create("a first one", "a", 1) // Validate is not called any more
		create("a second one", "a", 0)
		create("in another namespace", "b", 1)
		changed("b", "quota", 6)
		create("nothing has changed here", "a", 0)
		create("a quota has changed there", "b", 2) // admission does not know it yet
		real.response.UnconcernedHere = 6
		create("admission knows it", "b", 1)
		create("as before", "b", 0)
		changed("", "b", 7)
		create("the namespace itself has changed", "b", 2)
		real.response.UnconcernedHere = 0
		create("a quota applies", "a", 0)
		configured = 8
		create("a webhook was configured", "a", 2)
		configured, real.response.UnconcernedHere = 5, 8
		create("it is gone", "a", 1)
		following = false
		create("changes are not followed", "a", 2)
		following = true
		heads.observe(9, nil)
		create("they were not followed in between", "a", 2)
		real.response.UnconcernedHere = 9
		create("and are again", "a", 1)
		<-time.After(unconcernedLifetime) // of the test's own clock
		create("admission may have restarted", "a", 1)
	})
}

// TestResidentsAreBounded: beyond a number of namespaces all count as changed, and none as unchanged that
// has changed.
func TestResidentsAreBounded(t *testing.T) {
	r := newResidents(changes.NewHeads(changes.Source{}, nil))
	for i := range int64(maxNamespaces + 10) {
		name := fmt.Sprint("n", i)
		r.observe(i+1, []services.Change{{Object: services.Object{Key: resource.Key{Name: name}, Revision: i + 1}}})
		if r.since(name) < i+1 || r.since("n0") < 1 {
			t.Fatalf("a change is forgotten: %d, %d", r.since(name), r.since("n0"))
		}
	}
	if len(r.newest) > maxNamespaces {
		t.Errorf("%d namespaces are held", len(r.newest))
	}
}
