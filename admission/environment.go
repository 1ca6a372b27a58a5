package admission

import (
	"context"
	"time"

	"github.com/portico-platform/portico/admission/internal/plugin"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/bus"
	"github.com/portico-platform/portico/services/changes"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/services/rpc"
	"github.com/portico-platform/portico/services/run"
)

// environment connects what the plugins work with and waits until their mirrors
// are filled.
func environment(ctx context.Context, n *run.Node) (plugin.Environment, error) {
	e := plugin.Environment{Vocabulary: n.Vocabulary}
	store, err := rpc.Store.Use(ctx, n)
	if err != nil {
		return e, err
	}
	if e.Authz, err = rpc.Authz.Use(ctx, n); err != nil {
		return e, err
	}
	hub, err := rpc.WatchHub.Use(ctx, n)
	if err != nil {
		return e, err
	}
	conn, err := bus.Conn.Use(ctx, n)
	if err != nil {
		return e, err
	}
	e.Store = store
	notReady, _ := n.Flags.GetInt64("default-not-ready-toleration-seconds")
	unreachable, _ := n.Flags.GetInt64("default-unreachable-toleration-seconds")
	e.NotReadyFor, e.UnreachableFor = time.Duration(notReady)*time.Second, time.Duration(unreachable)*time.Second
	m := mirrors{node: n, store: store, source: changes.Source{Bus: conn, Hub: hub}}
	e.Namespaces = mirror(&m, resource.GroupResource{Resource: "namespaces"}, plugin.ParseNamespace)
	e.StorageClasses = mirror(&m, resource.GroupResource{Group: n.Vocabulary.Group("storage."), Resource: "storageclasses"},
		plugin.StorageClassParser(n.Vocabulary))
	e.IngressClasses = mirror(&m, resource.GroupResource{Group: n.Vocabulary.Group("networking."), Resource: "ingressclasses"},
		plugin.IngressClassParser(n.Vocabulary))
	e.PriorityClasses = mirror(&m, resource.GroupResource{Group: n.Vocabulary.Group("scheduling."), Resource: "priorityclasses"},
		plugin.ParsePriorityClass)
	return e, m.wait(ctx)
}

// mirrors makes mirrors and knows when all of them are filled.
type mirrors struct {
	node   *run.Node
	store  services.Reader
	source changes.Source
	ready  []<-chan struct{}
}

func mirror[T any](m *mirrors, gr resource.GroupResource, decode func(services.Object) (T, error)) *changes.Mirror[T] {
	made := changes.NewMirror(changes.MirrorConfig[T]{
		Source: m.source, Store: m.store, GroupResource: gr, Decode: decode, Log: m.node.Log,
	})
	m.node.Go("mirror of "+gr.String(), made.Run)
	m.ready = append(m.ready, made.Ready())
	return made
}

func (m *mirrors) wait(ctx context.Context) error {
	for _, ready := range m.ready {
		select {
		case <-ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
