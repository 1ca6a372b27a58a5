package worker

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/kit/run"
)

// NewInformer returns an informer of the objects of a client, with a field selector that may
// be empty. It retries until its context ends.
func NewInformer(client dynamic.ResourceInterface, fieldSelector string) cache.SharedIndexInformer {
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = fieldSelector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fieldSelector
			return client.Watch(ctx, options)
		},
	}
	return cache.NewSharedIndexInformer(ListThenWatch(source), &unstructured.Unstructured{}, 0, cache.Indexers{})
}

// ListThenWatch makes a reflector list and then watch, instead of streaming the list by a
// watch: client-go recognizes the end of a streamed list by an annotation of the k8s
// vocabulary, which the API may not use.
func ListThenWatch(source *cache.ListWatch) cache.ListerWatcher { return listWatch{source} }

type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is called by client-go.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// Go runs a loop of the worker, as Node.Go does. Informers and reflectors that get its context
// write to the log of the process, in its format, until the context ends.
func Go(n *run.Node, what string, loop func(context.Context) error) {
	n.Go(what, func(ctx context.Context) error {
		return loop(klog.NewContext(ctx, logr.FromSlogHandler(whileRunning{n.Log.Handler(), ctx})))
	})
}

// whileRunning logs nothing once its context has ended: then all watches fail. Errors because a type is not served, since
// its definition was deleted or is not established yet, are for debugging.
type whileRunning struct {
	slog.Handler
	ctx context.Context
}

// Handle implements slog.Handler.
func (h whileRunning) Handle(ctx context.Context, r slog.Record) error {
	if h.ctx.Err() != nil {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && apierrors.IsNotFound(err) {
			r.Level = slog.LevelDebug
		}
		return true
	})
	if !h.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h whileRunning) WithAttrs(attrs []slog.Attr) slog.Handler {
	return whileRunning{h.Handler.WithAttrs(attrs), h.ctx}
}

// WithGroup implements slog.Handler.
func (h whileRunning) WithGroup(name string) slog.Handler {
	return whileRunning{h.Handler.WithGroup(name), h.ctx}
}

// Ready returns a health check that passes when an informer has synced, or cannot because the API cannot read one of
// the objects: the process waits for its repair, and all others of the process go on. It must be called before the
// informer runs.
func Ready(name string, informer cache.SharedIndexInformer) run.Check {
	var unreadable atomic.Bool
	// It fails only for an informer that runs, which then reports no such errors.
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		unreadable.Store(apierrors.ReasonForError(err) == services.ReasonUnreadable)
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	return run.Check{Name: name, Probe: func(context.Context) error {
		if !informer.HasSynced() && !unreadable.Load() {
			return errors.New("has not read its objects yet")
		}
		return nil
	}}
}
