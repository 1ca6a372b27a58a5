package autoupdate_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/portico-platform/portico/frontdoor/internal/bootstrap"
	"github.com/portico-platform/portico/frontdoor/internal/bootstrap/autoupdate"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/handlertest"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes"
	"github.com/portico-platform/portico/frontdoor/internal/handlers/writes/amend"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/catalogue"
	"github.com/portico-platform/portico/frontdoor/internal/typesystem/strategy"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/kittest/fake"
	"github.com/portico-platform/portico/services/release"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/tree"
	"github.com/portico-platform/portico/services/vocabulary"
)

const (
	group  = "rbac.authorization.k8s.io"
	optOut = "rbac.authorization.kubernetes.io/autoupdate"
)

var (
	roles    = resource.GroupResource{Group: group, Resource: "clusterroles"}
	bindings = resource.GroupResource{Group: group, Resource: "clusterrolebindings"}
)

// bench is a store with the default roles, reconciled by two replicas.
type bench struct {
	*testing.T
	engine   *typesystem.Engine
	store    services.Store
	handlers *writes.Handlers
	defaults []autoupdate.Default
	types    map[string]*catalogue.Type
	changes  atomic.Int64 // updates of existing objects
}

func (b *bench) Create(ctx context.Context, d autoupdate.Default) error {
	return b.handlers.Create(ctx, b.engine, b.types[d.Object["kind"].(string)], d.Object)
}

func (b *bench) Change(ctx context.Context, d autoupdate.Default, change func(map[string]any)) error {
	b.changes.Add(1)
	return b.handlers.Amend(ctx, amend.Amendment{Engine: b.engine, Type: b.types[d.Object["kind"].(string)], Key: d.Key,
		Change: func(object map[string]any) error {
			change(object)
			return nil
		}})
}

func start(t *testing.T) *bench {
	t.Helper()
	v := vocabulary.K8s()
	types, err := catalogue.New(catalogue.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	e, err := typesystem.New(types, typesystem.Options{Vocabulary: v})
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.New(t)
	b := &bench{T: t, engine: e, store: cluster.Store(), types: map[string]*catalogue.Type{},
		handlers: &writes.Handlers{Store: cluster.Store(), Admission: handlertest.AdmitAll{}, Vocabulary: v, Log: slog.New(slog.DiscardHandler)}}
	objects, err := bootstrap.Objects(v, release.V121, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		kind := o["kind"].(string)
		t, ok := types.ByKind(group, "v1", kind)
		if o["apiVersion"] != group+"/v1" || !ok {
			continue
		}
		b.types[kind] = t
		meta := strategy.Metadata(o)
		namespace, _ := meta["namespace"].(string)
		d := autoupdate.Default{Key: resource.Key{GroupResource: t.Key, Namespace: namespace, Name: meta["name"].(string)}, Object: o}
		b.defaults = append(b.defaults, d)
		if err := b.Create(b.Context(), d); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var replicas sync.WaitGroup
	for range 2 {
		k := autoupdate.New(autoupdate.Config{Defaults: b.defaults, OptOut: optOut, Source: cluster.Source(),
			Store: b.store, Writer: b, Log: slog.New(slog.DiscardHandler)})
		replicas.Go(func() { _ = k.Run(ctx) })
	}
	t.Cleanup(func() { cancel(); replicas.Wait() })
	return b
}

func (b *bench) get(gr resource.GroupResource, name string) (map[string]any, int64) {
	b.Helper()
	o, err := b.store.Get(b.Context(), services.GetRequest{Key: resource.Key{GroupResource: gr, Name: name}})
	if err != nil {
		return nil, 0
	}
	object, err := tree.Decode(o.JSON)
	if err != nil {
		b.Fatal(err)
	}
	return object, o.Revision
}

// edit changes an object in the store.
func (b *bench) edit(gr resource.GroupResource, name string, change func(map[string]any)) {
	b.Helper()
	for {
		object, revision := b.get(gr, name)
		change(object)
		raw, err := tree.Encode(object)
		if err != nil {
			b.Fatal(err)
		}
		_, err = b.store.Update(b.Context(), services.UpdateRequest{Key: resource.Key{GroupResource: gr, Name: name}, Revision: revision,
			Content: services.Content{JSON: raw}})
		if err == nil {
			return
		}
		if !services.IsReason(err, services.ReasonConflict) {
			b.Fatal(err)
		}
	}
}

func (b *bench) delete(gr resource.GroupResource, name string) {
	b.Helper()
	_, revision := b.get(gr, name)
	if _, err := b.store.Delete(b.Context(), services.DeleteRequest{Key: resource.Key{GroupResource: gr, Name: name}, Revision: revision}); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	ticks := time.NewTicker(10 * time.Millisecond)
	defer ticks.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			b.Fatal("not in time: " + what)
		case <-ticks.C:
		}
	}
}

// TestDeletedDefaultsReturn deletes all default roles and bindings.
func TestDeletedDefaultsReturn(t *testing.T) {
	b := start(t)
	was := map[resource.Key]string{}
	for _, d := range b.defaults {
		o, err := b.store.Get(t.Context(), services.GetRequest{Key: d.Key})
		if err != nil {
			t.Fatal(err)
		}
		was[d.Key] = o.UID
		if _, err := b.store.Delete(t.Context(), services.DeleteRequest{Key: d.Key, Revision: o.Revision}); err != nil {
			t.Fatal(err)
		}
	}
	b.eventually("all are there again", func() bool {
		for _, d := range b.defaults {
			o, err := b.store.Get(t.Context(), services.GetRequest{Key: d.Key})
			if err != nil || o.UID == was[d.Key] {
				return false
			}
		}
		return true
	})
	if n := b.changes.Load(); n > 0 {
		t.Errorf("%d defaults were taken for incomplete as they are created", n)
	}
}

// TestGuttedDefaultsAreCompleted removes parts of default roles and bindings, which are
// restored, and adds others, which are kept.
func TestGuttedDefaultsAreCompleted(t *testing.T) {
	b := start(t)
	const worker = "system:portico:csr-signer"
	desired, _ := b.get(roles, worker)
	b.edit(roles, worker, func(role map[string]any) {
		role["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
	})
	b.edit(bindings, worker, func(binding map[string]any) {
		binding["subjects"] = []any{map[string]any{"apiGroup": group, "kind": "User", "name": "jane"}}
	})
	b.edit(roles, "view", func(role map[string]any) {
		delete(role, "aggregationRule")
		delete(role["metadata"].(map[string]any), "labels")
	})
	b.edit(roles, "system:basic-user", func(role map[string]any) {
		role["aggregationRule"] = map[string]any{"clusterRoleSelectors": []any{map[string]any{}}}
		role["rules"] = []any{map[string]any{"apiGroups": []any{"*"}, "resources": []any{"*"}, "verbs": []any{"*"}}}
	})
	b.edit(bindings, "cluster-admin", func(binding map[string]any) {
		binding["roleRef"] = map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": "view"}
		binding["subjects"] = []any{map[string]any{"apiGroup": group, "kind": "Group", "name": "everybody"}}
	})
	b.eventually("the rules are complete", func() bool {
		role, _ := b.get(roles, worker)
		return len(role["rules"].([]any)) == 1+len(desired["rules"].([]any))
	})
	b.eventually("both subjects are bound", func() bool {
		binding, _ := b.get(bindings, worker)
		return len(binding["subjects"].([]any)) == 2
	})
	b.eventually("the role aggregates", func() bool {
		role, _ := b.get(roles, "view")
		labels, _ := role["metadata"].(map[string]any)["labels"].(map[string]any)
		return role["aggregationRule"] != nil && labels[group+"/aggregate-to-edit"] == "true"
	})
	b.eventually("a role that aggregates nothing by default has its own rules again", func() bool {
		role, _ := b.get(roles, "system:basic-user")
		return role["aggregationRule"] == nil && !strings.Contains(fmt.Sprint(role["rules"]), "[*]")
	})
	b.eventually("the binding is to its role, and of nobody else", func() bool {
		binding, _ := b.get(bindings, "cluster-admin")
		return fmt.Sprint(binding["roleRef"].(map[string]any)["name"], len(binding["subjects"].([]any)),
			binding["subjects"].([]any)[0].(map[string]any)["name"]) == "cluster-admin1system:masters"
	})
}

// TestOptOut: an operator may take over a default. It is restored only after its
// deletion.
func TestOptOut(t *testing.T) {
	b := start(t)
	b.edit(roles, "view", func(role map[string]any) {
		tree.Object(role["metadata"].(map[string]any), "annotations")[optOut] = "false"
		delete(role, "aggregationRule")
	})
	b.edit(roles, "edit", func(role map[string]any) { delete(role, "aggregationRule") })
	b.eventually("the other one is complete", func() bool {
		role, _ := b.get(roles, "edit")
		return role["aggregationRule"] != nil
	})
	if role, _ := b.get(roles, "view"); role["aggregationRule"] != nil {
		t.Error("a role was changed against its annotation")
	}
	b.delete(roles, "view")
	b.eventually("the deleted one is there again", func() bool {
		role, _ := b.get(roles, "view")
		return role["aggregationRule"] != nil
	})
}
