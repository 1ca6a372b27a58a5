package admission_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
)

// sound is an admission whose claims to be unconcerned are checked in every test: a kind of
// request that needs no review must neither be changed nor rejected. What it validates early must
// be valid. In every test it also gets every other object as a tree, with the same results.
type sound struct {
	services.Admission
	t     *testing.T
	calls *atomic.Int64
}

func (s sound) Mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	r.Remembers, r.ValidateEarly = true, !r.AndValidate
	got, err := s.mutate(ctx, r)
	if r.ValidateEarly && got.Validated {
		s.checkEarly(ctx, r, got)
		got.Validated = false // the test has not asked for it
	}
	r.ValidateEarly = false
	if err == nil && got.Unconcerned > 0 {
		if got.Object != nil {
			s.t.Errorf("%s %s/%s: unconcerned, but changed", r.Operation, r.Group, r.Resource)
		}
		if _, refused := s.Admission.Validate(ctx, r); refused != nil {
			s.t.Errorf("%s %s/%s: unconcerned, but %v", r.Operation, r.Group, r.Resource, refused)
		}
	}
	if err == nil && got.UnconcernedHere > 0 {
		s.checkHere(ctx, r, got)
	}
	return got, err
}

// checkEarly checks that what was validated early is accepted, unless something has changed since then, such
// as the namespace: it is no longer validated early then.
func (s sound) checkEarly(ctx context.Context, r services.AdmissionRequest, got services.AdmissionResponse) {
	early := r
	if r.ValidateEarly = false; got.Object != nil {
		r.Object = got.Object
	}
	_, refused := s.Admission.Validate(ctx, r)
	if refused == nil {
		return
	}
	if again, err := s.Admission.Mutate(ctx, early); err == nil && again.Validated {
		s.t.Errorf("%s %s/%s: validated early, but %v", r.Operation, r.Group, r.Resource, refused)
	}
}

// checkHere checks a claim about a namespace, which ends when an object in it changes.
func (s sound) checkHere(ctx context.Context, r services.AdmissionRequest, got services.AdmissionResponse) {
	_, refused := s.Admission.Validate(ctx, r)
	if got.Object == nil && refused == nil {
		return
	}
	if again, err := s.Admission.Mutate(ctx, r); err == nil && again.UnconcernedHere > 0 {
		s.t.Errorf("%s %s/%s: unconcerned in %s, but changed to %s or %v", r.Operation, r.Group, r.Resource, r.Namespace, got.Object, refused)
	}
}

// mutate calls Mutate, every other time with a tree.
func (s sound) mutate(ctx context.Context, r services.AdmissionRequest) (services.AdmissionResponse, error) {
	object, ok := tree.DecodePlain(r.Object)
	if _, takes := s.Admission.(services.AdmissionOfTrees); !takes || !ok || r.AndValidate || s.calls.Add(1)%2 == 0 {
		return s.Admission.Mutate(ctx, r)
	}
	r.Tree, r.Object = object, nil
	got, err := s.Admission.Mutate(ctx, r)
	if got.Tree == nil {
		return got, err
	}
	encoded, failed := tree.Encode(got.Tree)
	again, _ := tree.DecodePlain(encoded)
	if failed != nil || !tree.Equal(again, got.Tree) {
		s.t.Errorf("%s %s/%s: the tree has other values than JSON: %v, %v", r.Operation, r.Group, r.Resource, got.Tree, failed)
	}
	got.Object, got.Tree = encoded, nil
	return got, err
}

// TestConcerns: admission is unconcerned with updates of types without plugins, and concerned
// as soon as a webhook may be called for them, whatever its selectors.
func TestConcerns(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("ok", `"allowed":true`)
	a := started(t, c)
	of := func(operation services.Operation, resource string) services.AdmissionRequest {
		r := create("here")
		r.Operation, r.Resource, r.OldObject = operation, resource, r.Object
		return r
	}
	unconcerned := func(r services.AdmissionRequest) int64 {
		t.Helper()
		got, err := a.Mutate(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return got.Unconcerned
	}
	for resource, operations := range map[string]map[services.Operation]bool{
		"configmaps": {services.OperationCreate: true, services.OperationUpdate: false, services.OperationDelete: false},
		"secrets":    {services.OperationUpdate: false},
		"pods":       {services.OperationUpdate: true, services.OperationDelete: true},
		"services":   {services.OperationUpdate: true},
		"nodes":      {services.OperationUpdate: true},
	} {
		for operation, concerned := range operations {
			if revision := unconcerned(of(operation, resource)); (revision == 0) != concerned {
				t.Errorf("%s %s: unconcerned since %d, want concerned: %v", operation, resource, revision, concerned)
			}
		}
	}
	before := unconcerned(of(services.OperationUpdate, "configmaps"))
	selective := `objectSelector: {matchLabels: {never: there}}`
	configure(t, c, "validating", "some", s.hook("ok", selective))
	for end := time.Now().Add(patience); unconcerned(of(services.OperationUpdate, "configmaps")) > 0; {
		if time.Now().After(end) {
			t.Fatal("a webhook never concerns the requests that its rules name")
		}
	}
	if before == 0 {
		t.Error("concerned before there was a webhook")
	}
}

// TestUnconcernedHere: admission is unconcerned with creates in a namespace while it exists, is not
// terminating and has no quota, and with requests of other namespaces whatever happens there.
func TestUnconcernedHere(t *testing.T) {
	c := cluster(t)
	for _, name := range []string{"calm", "ending"} {
		c.Put(t, namespaces, `{metadata: {name: `+name+`}, status: {phase: Active}}`)
	}
	a := started(t, c)
	here := func(resource, namespace string) int64 {
		t.Helper()
		r := create(namespace)
		r.Resource = resource
		got, err := a.Mutate(t.Context(), r)
		if err != nil && !services.IsReason(err, services.ReasonForbidden) {
			t.Fatal(err)
		}
		return got.UnconcernedHere
	}
	becomes := func(what, namespace string, idle bool) {
		t.Helper()
		for end := time.Now().Add(patience); (here("configmaps", namespace) > 0) != idle; {
			if time.Now().After(end) {
				t.Fatalf("%s: unconcerned is never %v", what, idle)
			}
		}
	}
	becomes("a namespace without quotas", "calm", true)
	for _, plural := range []string{"pods", "persistentvolumeclaims"} {
		if here(plural, "calm") > 0 {
			t.Errorf("unconcerned with %s, which plugins change", plural)
		}
	}
	c.Put(t, core("resourcequotas"), `{metadata: {name: one, namespace: calm}, spec: {hard: {count/secrets: "1"}}}`)
	becomes("a quota", "calm", false)
	becomes("a quota elsewhere", "ending", true)
	c.Put(t, namespaces, `{metadata: {name: ending, deletionTimestamp: "2026-01-01T00:00:00Z"}, status: {phase: Terminating}}`)
	becomes("a namespace that ends", "ending", false)
	c.Delete(resource.Key{GroupResource: core("resourcequotas"), Namespace: "calm", Name: "one"})
	becomes("the quota is gone", "calm", true)
}

// TestBothInOneCall: a create that no plugin changes is validated in the call of Mutate, with
// the same refusals, unless a validating webhook is to be called.
func TestBothInOneCall(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("ok", `"allowed":true`)
	a := started(t, c)
	r := create("here")
	r.AndValidate = true
	if got, err := a.Mutate(t.Context(), r); err != nil || !got.Validated || got.Object != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	r.AndValidate = false
	if got, err := a.Mutate(t.Context(), r); err != nil || got.Validated {
		t.Errorf("validated without a request for that: %+v, %v", got, err)
	}
	c.Put(t, core("resourcequotas"), `{metadata: {name: none, namespace: here}, spec: {hard: {count/configmaps: "0"}}, status: {hard: {count/configmaps: "0"}, used: {count/configmaps: "0"}}}`)
	r.AndValidate = true
	for end := time.Now().Add(patience); ; {
		if _, err := a.Mutate(t.Context(), r); err != nil {
			if !services.IsReason(err, services.ReasonForbidden) {
				t.Errorf("got %v", err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("the quota is never applied")
		}
	}
	configure(t, c, "validating", "all", s.hook("ok"))
	c.Put(t, namespaces, `{metadata: {name: other}, status: {phase: Active}}`)
	other := create("other")
	other.AndValidate = true
	for end := time.Now().Add(patience); ; {
		got, err := a.Mutate(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Validated {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the webhook never counts")
		}
	}
	s.calls() // it may have begun to count within a call
	if got, err := a.Mutate(t.Context(), other); err != nil || got.Validated {
		t.Errorf("got %+v, %v", got, err)
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("the webhook was called %d times by Mutate", n)
	}
}

// TestValidatedEarly: a pod that plugins change is validated in the call of Mutate, unless that would
// charge a quota or a validating webhook is to be called. What only Validate refuses is not
// refused by Mutate, whose notes are then those without it.
func TestValidatedEarly(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("ok", `"allowed":true`)
	for _, name := range []string{"charged", "other"} {
		c.Put(t, namespaces, `{metadata: {name: `+name+`}, status: {phase: Active}}`)
	}
	a := startedWith(t, c, c.Store(), "--disable-admission-plugins=ServiceAccount", "--enable-admission-plugins=SecurityContextDeny")
	early := func(namespace, spec string) services.AdmissionResponse {
		t.Helper()
		r := create(namespace)
		r.Resource, r.Kind, r.ValidateEarly = "pods", "Pod", true
		r.Object = []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"` + namespace + `"},"spec":{` + spec + `"containers":[{"name":"a","image":"b"}]}}`)
		got, err := a.Mutate(t.Context(), r)
		if err != nil || got.Object == nil {
			t.Fatalf("got %s, %v", got.Object, err)
		}
		return got
	}
	never := func(what, namespace string) {
		t.Helper()
		for end := time.Now().Add(patience); early(namespace, "").Validated; {
			if time.Now().After(end) {
				t.Fatalf("%s never counts", what)
			}
		}
	}
	if !early("here", "").Validated {
		t.Error("a pod that is changed is not validated")
	}
	if early("here", `"securityContext":{"runAsUser":1},`).Validated {
		t.Error("a pod that is refused is validated")
	}
	quota := resource.Key{GroupResource: core("resourcequotas"), Namespace: "charged", Name: "one"}
	written := c.Put(t, quota.GroupResource, `{metadata: {name: one, namespace: charged}, spec: {hard: {pods: "1"}}, status: {hard: {pods: "1"}, used: {pods: "0"}}}`)
	never("the quota", "charged")
	if !early("other", "").Validated {
		t.Error("a quota counts in another namespace")
	}
	if one, err := c.Get(t.Context(), services.GetRequest{Key: quota}); err != nil || one.Revision != written {
		t.Errorf("the quota is charged: %s, %v", one.JSON, err)
	}
	configure(t, c, "validating", "all", s.hook("ok", `rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]`))
	never("the webhook", "other")
}
