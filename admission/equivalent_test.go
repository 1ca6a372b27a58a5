package admission_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/portico-platform/portico/services"
)

// versioned is a converter whose objects have their version as apiVersion and in the name of
// their only field. It records the conversions.
type versioned struct {
	mu    sync.Mutex
	calls []string
	err   error
}

func (v *versioned) Merge(context.Context, []byte, []byte, services.ServedType) ([]byte, error) {
	return nil, errors.New("nothing is merged")
}

func (v *versioned) Convert(_ context.Context, object []byte, to services.ServedType) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, to.Version)
	var o map[string]any
	if err := json.Unmarshal(object, &o); err != nil || v.err != nil {
		return nil, errors.Join(err, v.err)
	}
	converted := map[string]any{"apiVersion": to.KindVersion, "metadata": o["metadata"], to.KindVersion: o[fmt.Sprint(o["apiVersion"])]}
	return json.Marshal(converted)
}

func (v *versioned) called() []string {
	defer func() { v.calls = nil }()
	return v.calls
}

// shared returns an update of a thing in v2, which is served in v1 too, and in another group.
func shared(v *versioned) services.AdmissionRequest {
	served := func(group, version string) services.ServedType {
		return services.ServedType{Group: group, Version: version, Resource: "things", KindGroup: group, KindVersion: version, Kind: "Thing"}
	}
	r := services.AdmissionRequest{Operation: services.OperationUpdate, Group: "example.com", Version: "v2", Resource: "things", Kind: "Thing",
		Namespace: "here", Name: "x", Object: []byte(`{"apiVersion":"v2","metadata":{"name":"x"},"v2":"new"}`),
		OldObject: []byte(`{"apiVersion":"v2","metadata":{"name":"x"},"v2":"old"}`),
		Served:    []services.ServedType{served("example.com", "v2"), served("example.com", "v1"), served("other.example.com", "v3")}}
	if v != nil {
		r.Converter = v
	}
	return r
}

func things(group, version string) string {
	return fmt.Sprintf(`rules: [{operations: ["*"], apiGroups: [%s], apiVersions: [%s], resources: [things]}]`, group, version)
}

// TestEquivalentWebhooksSeeTheirVersion: the objects are converted to the version of the rule,
// once, and what a webhook changes is converted back.
func TestEquivalentWebhooksSeeTheirVersion(t *testing.T) {
	c, s := cluster(t), serve(t)
	s.on("old", patching(`[{"op":"test","path":"/v1","value":"new"},{"op":"replace","path":"/v1","value":"changed"}]`))
	configure(t, c, "mutating", "a", s.hook("exact", things("example.com", "v1"), "matchPolicy: Exact"),
		s.hook("first", things("example.com", "v1")), s.hook("old", things("example.com", "v1")), s.hook("own", things("example.com", "v2")))
	configure(t, c, "validating", "a", s.hook("group", things("other.example.com", "v3")), s.hook("both", things("example.com", "v1, v2")),
		s.hook("unserved", things("example.com", "v7")))
	a, v := started(t, c), &versioned{}
	got, err := a.Mutate(t.Context(), shared(v))
	if err != nil || string(got.Object) != `{"apiVersion":"v2","metadata":{"name":"x"},"v2":"changed"}` {
		t.Fatalf("%s, %v", got.Object, err)
	}
	if called := s.calls(); !reflect.DeepEqual(called, []string{"first", "old", "own"}) {
		t.Errorf("called %q", called)
	}
	if made := v.called(); !reflect.DeepEqual(made, []string{"v1", "v1", "v2"}) { // the old object, the new one, and back
		t.Errorf("conversions to %q", made)
	}
	wantReview(t, s, "old", "example.com", "v1", `{"apiVersion":"v1","metadata":{"name":"x"},"v1":"new"}`)
	wantReview(t, s, "own", "example.com", "v2", `{"apiVersion":"v2","metadata":{"name":"x"},"v2":"changed"}`)
	request := shared(v)
	if _, err := a.Validate(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	wantReview(t, s, "group", "other.example.com", "v3", `{"apiVersion":"v3","metadata":{"name":"x"},"v3":"new"}`)
	wantReview(t, s, "both", "example.com", "v2", string(request.Object))
	if called := s.calls(); len(called) != 2 {
		t.Errorf("called %q", called)
	}
}

// wantReview checks the last AdmissionRequest of a webhook: its own type and that of the
// request, and the object.
func wantReview(t *testing.T, s *remote, name, group, version, object string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	review, _ := s.reviews[name]["request"].(map[string]any)
	kind, of := map[string]any{"group": group, "version": version, "kind": "Thing"}, map[string]any{"group": group, "version": version, "resource": "things"}
	if !reflect.DeepEqual(review["kind"], kind) || !reflect.DeepEqual(review["resource"], of) ||
		!reflect.DeepEqual(review["requestKind"], map[string]any{"group": "example.com", "version": "v2", "kind": "Thing"}) ||
		!reflect.DeepEqual(review["requestResource"], map[string]any{"group": "example.com", "version": "v2", "resource": "things"}) {
		t.Errorf("%s was called for %v", name, review)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(object), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(review["object"], want) {
		t.Errorf("%s received %v, want %v", name, review["object"], want)
	}
	if old, _ := review["oldObject"].(map[string]any); old["apiVersion"] != version || old[version] != "old" {
		t.Errorf("%s received the old object %v", name, old)
	}
}

// TestEquivalentWebhooksNeedAConverter: without a converter nobody is called, and only where
// something has to be converted.
func TestEquivalentWebhooksNeedAConverter(t *testing.T) {
	c, s := cluster(t), serve(t)
	configure(t, c, "mutating", "a", s.hook("own", things("example.com", "v2")), s.hook("old", things("example.com", "v1")))
	configure(t, c, "validating", "a", s.hook("own", things("example.com", "v2")), s.hook("old", things("example.com", "v1")))
	a := started(t, c)
	for _, ask := range []func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){a.Mutate, a.Validate} {
		if _, err := ask(t.Context(), shared(nil)); !errors.Is(err, services.ErrNoConverter) || len(s.calls()) > 0 {
			t.Errorf("%v", err)
		}
		body := shared(nil) // of a subresource, such as Scale
		for i := range body.Served {
			body.Served[i].KindGroup, body.Served[i].KindVersion, body.Served[i].Kind = "autoscaling", "v1", "Scale"
		}
		body.Kind, body.KindGroup, body.KindVersion = "Scale", "autoscaling", "v1"
		if _, err := ask(t.Context(), body); err != nil || len(s.calls()) != 2 {
			t.Error(err)
		}
		s.mu.Lock()
		if request := s.reviews["old"]["request"].(map[string]any); request["resource"].(map[string]any)["version"] != "v1" ||
			request["requestResource"].(map[string]any)["version"] != "v2" {
			t.Errorf("called for %v", request)
		}
		s.mu.Unlock()
		// A front door of an earlier release: the objects are sent as they are.
		earlier := shared(nil)
		earlier.Served = nil
		if _, err := ask(t.Context(), earlier); err != nil || len(s.calls()) != 2 {
			t.Error(err)
		}
	}
}

// TestObjectsThatCannotBeConverted: the request fails, whatever the failure policy is.
func TestObjectsThatCannotBeConverted(t *testing.T) {
	c, s := cluster(t), serve(t)
	for _, kind := range []string{"mutating", "validating"} {
		configure(t, c, kind, "a", s.hook("old", things("example.com", "v1"), "failurePolicy: Ignore"))
	}
	a := started(t, c)
	for _, ask := range []func(context.Context, services.AdmissionRequest) (services.AdmissionResponse, error){a.Mutate, a.Validate} {
		_, err := ask(t.Context(), shared(&versioned{err: errors.New("no such field")}))
		if refusal := services.AsStatus(err); refusal == nil || refusal.Code != 500 || !strings.Contains(refusal.Message, "no such field") || len(s.calls()) > 0 {
			t.Error(err)
		}
	}
}
