package flowcontrol_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/flowcontrol"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/http/fairness"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const group = "flowcontrol.apiserver.k8s.io"

var (
	levels = resource.GroupResource{Group: group, Resource: "prioritylevelconfigurations"}
	flows  = resource.GroupResource{Group: group, Resource: "flowschemas"}
)

// bench is a store with the objects of a release, kept by two replicas.
type bench struct {
	*testing.T
	store    services.Store
	engine   *typesystem.Engine
	handlers *writes.Handlers
	shares   *fairness.Shares
	created  int64 // the revision after the creation of the objects
}

func start(t *testing.T, r release.Release) *bench {
	t.Helper()
	v := vocabulary.K8s()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v, Release: r})
	if err != nil {
		t.Fatal(err)
	}
	e, err := typesystem.New(types, typesystem.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.New(t)
	b := &bench{T: t, store: cluster.Store(), engine: e, shares: fairness.New(fairness.Config{Seats: 600}),
		handlers: &writes.Handlers{Store: cluster.Store(), Admission: handlertest.AdmitAll{}, Vocabulary: v, Log: slog.New(slog.DiscardHandler)}}
	if deleted, err := bootstrap.Deleted(t.Context(), b.store, v, r); err != nil || len(deleted) > 0 {
		t.Fatalf("at the first start %v are not created; error %v", deleted, err)
	}
	objects, err := bootstrap.Fairness(v, r)
	if err != nil {
		t.Fatal(err)
	}
	var defaults []flowcontrol.Default
	for _, o := range objects {
		b.create(o.Object)
		defaults = append(defaults, flowcontrol.Default{Object: o.Object, Mandatory: o.Mandatory, AutoUpdate: bootstrap.AutoUpdate(v, r)})
	}
	if b.created, err = b.store.Revision(t.Context(), resource.GroupResource{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var replicas sync.WaitGroup
	for i := range 2 {
		shares := b.shares
		if i > 0 {
			shares = fairness.New(fairness.Config{Seats: 600})
		}
		k, err := flowcontrol.New(flowcontrol.Config{Vocabulary: v, Source: cluster.Source(), Store: b.store, Writes: b.handlers,
			Engine: func() *typesystem.Engine { return e }, Shares: shares, Defaults: defaults, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		replicas.Go(func() { _ = k.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); replicas.Wait() })
	return b
}

func (b *bench) create(object map[string]any) {
	b.Helper()
	t, ok := b.engine.Types.ByAPIVersion(tree.Text(object, "apiVersion"), tree.Text(object, "kind"))
	if !ok {
		b.Fatalf("%v is not served", object["apiVersion"])
	}
	if err := b.handlers.Create(b.Context(), b.engine, t, tree.Copy(object).(map[string]any)); err != nil {
		b.Fatal(err)
	}
}

// get returns an object in the version of the release; nil if it does not exist.
func (b *bench) get(gr resource.GroupResource, name string) map[string]any {
	b.Helper()
	o, err := b.store.Get(b.Context(), services.GetRequest{Key: resource.Key{GroupResource: gr, Name: name}})
	if err != nil {
		return nil
	}
	object, err := b.engine.DecodeStored(b.Context(), o, b.engine.Types.Stored(gr))
	if err != nil {
		b.Fatal(err)
	}
	return object
}

func (b *bench) edit(gr resource.GroupResource, name string, change func(map[string]any)) {
	b.Helper()
	err := b.handlers.Amend(b.Context(), amend.Amendment{Engine: b.engine, Type: b.engine.Types.Stored(gr), Key: resource.Key{GroupResource: gr, Name: name},
		Change: func(object map[string]any) error { change(object); return nil }})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) delete(gr resource.GroupResource, name string) {
	b.Helper()
	key := resource.Key{GroupResource: gr, Name: name}
	o, err := b.store.Get(b.Context(), services.GetRequest{Key: key})
	if err == nil {
		_, err = b.store.Delete(b.Context(), services.DeleteRequest{Key: key, Revision: o.Revision})
	}
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			b.Fatal("not in time: " + what)
		}
	}
}

// condition returns status, reason and message of the condition of a FlowSchema.
func (b *bench) condition(name string) string {
	for _, c := range tree.Objects(b.get(flows, name), "status", "conditions") {
		return tree.Text(c, "status") + " " + tree.Text(c, "reason") + " " + tree.Text(c, "message")
	}
	return ""
}

func (b *bench) class(user string, groups ...string) (flow, level string) {
	f, l := b.shares.Classify(&fairness.Request{Attributes: services.Attributes{User: services.UserInfo{Name: user, Groups: groups},
		Verb: "get", Version: "v1", Resource: "pods", Namespace: "shop"}}).UIDs()
	return f[0], l[0]
}

// TestDefaultsAreAccepted: what is created at the first start is not changed afterwards, except
// for its conditions.
func TestDefaultsAreAccepted(t *testing.T) {
	for r, wants := range map[release.Release][2]int{release.V121: {7, 12}, release.V136: {8, 12}} {
		b := start(t, r)
		all := func(gr resource.GroupResource) (objects []services.Object) {
			if _, err := services.ForEach(t.Context(), b.store, services.ListRequest{GroupResource: gr}, func(o services.Object) error {
				objects = append(objects, o)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return objects
		}
		b.eventually("all have a condition", func() bool {
			for _, o := range all(flows) {
				if !strings.HasPrefix(b.condition(o.Key.Name), "False Found This FlowSchema references the PriorityLevelConfiguration object named") {
					return false
				}
			}
			return true
		})
		operation := map[release.Release]string{release.V121: "Update", release.V136: "Apply"}[r]
		if entry := tree.Objects(b.get(flows, "global-default"), "metadata", "managedFields"); !slices.ContainsFunc(entry, func(e map[string]any) bool {
			return tree.Text(e, "manager") == "api-priority-and-fairness-config-consumer-v1" && tree.Text(e, "operation") == operation && tree.Child(e, "fieldsV1")["f:status"] != nil
		}) {
			t.Errorf("%s: nobody owns the condition: %v", r, entry)
		}
		if l, f := all(levels), all(flows); len(l) != wants[0] || len(f) != wants[1] {
			t.Errorf("%s: %d levels and %d flows, want %v", r, len(l), len(f), wants)
		}
		for _, o := range all(levels) {
			if o.Revision > b.created {
				t.Errorf("%s: level %s was changed", r, o.Key.Name)
			}
		}
		for _, o := range all(flows) {
			if g := tree.Number(b.get(flows, o.Key.Name), "metadata", "generation"); g != 1 {
				t.Errorf("%s: the spec of flow %s was changed %d times", r, o.Key.Name, g-1)
			}
		}
	}
}

// TestMandatoryObjectsReturn: those that were deleted or changed return, also with an opt-out.
func TestMandatoryObjectsReturn(t *testing.T) {
	b := start(t, release.V121)
	b.delete(flows, "exempt")
	b.delete(levels, "catch-all")
	b.edit(flows, "catch-all", func(o map[string]any) { o["spec"].(map[string]any)["matchingPrecedence"] = int64(7) })
	b.delete(flows, "service-accounts")
	b.eventually("they are there again", func() bool {
		return b.get(flows, "exempt") != nil && b.get(levels, "catch-all") != nil && tree.Number(b.get(flows, "catch-all"), "spec", "matchingPrecedence") == 10000
	})
	if b.get(flows, "service-accounts") != nil {
		t.Error("a suggested object that a client has deleted has returned")
	}
	deleted, err := bootstrap.Deleted(t.Context(), b.store, vocabulary.K8s(), release.V121)
	if err != nil || len(deleted) != 15 || !deleted[resource.Key{GroupResource: flows, Name: "service-accounts"}] {
		t.Errorf("the next start does not create %v; error %v", deleted, err)
	}
}

// TestSuggestedObjects: with an annotation, those that nobody has changed are kept, and those that
// a client has taken over are not.
func TestSuggestedObjects(t *testing.T) {
	const annotation = "apf.kubernetes.io/autoupdate-spec"
	b := start(t, release.V136)
	shares := func(name string) int64 {
		return tree.Number(b.get(levels, name), "spec", "limited", "nominalConcurrencyShares")
	}
	set := func(name, auto string, n int64) {
		b.edit(levels, name, func(o map[string]any) {
			metadata := o["metadata"].(map[string]any)
			metadata["annotations"] = map[string]any{annotation: auto}
			if auto == "" {
				delete(metadata, "annotations")
				metadata["generation"] = int64(2)
			}
			o["spec"].(map[string]any)["limited"].(map[string]any)["nominalConcurrencyShares"] = n
		})
	}
	set("workload-low", "false", 77)
	set("workload-high", "", 78)
	set("catch-all", "false", 79)
	set("system", "true", 80)
	b.delete(levels, "node-high")
	b.eventually("what follows its default does so again", func() bool {
		return shares("system") == 30 && shares("catch-all") == 5 && b.get(levels, "node-high") != nil &&
			tree.Text(b.get(levels, "workload-high"), "metadata", "annotations", annotation) == "false" &&
			tree.Text(b.get(levels, "catch-all"), "metadata", "annotations", annotation) == "true"
	})
	if low, high := shares("workload-low"), shares("workload-high"); low != 77 || high != 78 {
		t.Errorf("what a client has taken over was changed: %d, %d", low, high)
	}
}

// TestFlowsAreFollowed: a new FlowSchema classifies requests, and not while its level does not exist.
func TestFlowsAreFollowed(t *testing.T) {
	b := start(t, release.V121)
	b.create(map[string]any{"apiVersion": group + "/v1beta1", "kind": "FlowSchema", "metadata": map[string]any{"name": "of-jane"},
		"spec": map[string]any{"matchingPrecedence": int64(50), "priorityLevelConfiguration": map[string]any{"name": "own"},
			"rules": []any{map[string]any{"subjects": []any{map[string]any{"kind": "User", "user": map[string]any{"name": "jane"}}},
				"resourceRules": []any{map[string]any{"verbs": []any{"*"}, "apiGroups": []any{"*"}, "resources": []any{"*"}, "namespaces": []any{"*"}}}}}}})
	b.eventually("the condition says that the level is missing", func() bool {
		return strings.HasPrefix(b.condition("of-jane"), "True NotFound This FlowSchema references the PriorityLevelConfiguration object named \"own\" but there is no such object")
	})
	uid := func(gr resource.GroupResource, name string) string {
		return tree.Text(b.get(gr, name), "metadata", "uid")
	}
	if flow, _ := b.class("jane", "system:authenticated"); flow != uid(flows, "global-default") {
		t.Errorf("without its level the flow has the request: %s", flow)
	}
	b.create(map[string]any{"apiVersion": group + "/v1beta1", "kind": "PriorityLevelConfiguration", "metadata": map[string]any{"name": "own"},
		"spec": map[string]any{"type": "Limited", "limited": map[string]any{"assuredConcurrencyShares": int64(10), "limitResponse": map[string]any{"type": "Reject"}}}})
	b.eventually("the request is in its flow and level", func() bool {
		flow, level := b.class("jane", "system:authenticated")
		return flow == uid(flows, "of-jane") && level == uid(levels, "own")
	})
	b.eventually("the condition says that the level is there", func() bool { return strings.HasPrefix(b.condition("of-jane"), "False Found") })
	b.delete(levels, "own")
	b.eventually("the request is in the next flow", func() bool {
		flow, _ := b.class("jane", "system:authenticated")
		return flow == uid(flows, "global-default") && strings.HasPrefix(b.condition("of-jane"), "True")
	})
}
