package csrsigner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/monotonic"
	"github.com/portico-platform/portico/services/kit/worker"
	"github.com/portico-platform/portico/services/revocation"
)

// revocations follow the Revocations and know how old what they have seen may be: a list that is
// signed says so.
type revocations struct {
	*records
	informer cache.SharedIndexInformer
	heard    *atomic.Int64 // when the API has last confirmed the state, as monotonic.Now
	changed  chan struct{}
	log      *slog.Logger
}

func newRevocations(objects dynamic.ResourceInterface, issued *records, log *slog.Logger) (*revocations, error) {
	r := &revocations{records: issued, heard: &atomic.Int64{}, changed: make(chan struct{}, 1), log: log}
	r.informer = worker.NewInformer(&listener{objects, r.heard}, "")
	signal := func(any) {
		select {
		case r.changed <- struct{}{}:
		default: // one is waiting
		}
	}
	_, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: signal, UpdateFunc: func(_, now any) { signal(now) }, DeleteFunc: signal})
	return r, err
}

// Changed implements responder.Source.
func (r *revocations) Changed() <-chan struct{} { return r.changed }

// Revocations implements responder.Source.
func (r *revocations) Revocations() (specs []revocation.Spec, asOf time.Time) {
	if !r.informer.HasSynced() || !r.records.informer.HasSynced() {
		return nil, time.Time{}
	}
	asOf = time.Now().Add(-monotonic.Since(r.heard.Load())) // before the list: that is at least as new
	for _, object := range r.informer.GetStore().List() {
		o, ok := object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		raw, err := o.MarshalJSON()
		if err != nil {
			continue
		}
		spec, err := revocation.Decode(raw)
		if err != nil {
			r.log.Warn("a revocation is not readable", "name", o.GetName(), "error", err)
			continue
		}
		specs = append(specs, spec)
	}
	return specs, asOf
}

// listener notes when the API has answered a list, or sent an event or bookmark of a watch.
type listener struct {
	dynamic.ResourceInterface
	heard *atomic.Int64
}

// List implements dynamic.ResourceInterface.
func (l *listener) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	began := monotonic.Now()
	objects, err := l.ResourceInterface.List(ctx, options)
	if err == nil {
		l.heard.Store(began)
	}
	return objects, err
}

// Watch implements dynamic.ResourceInterface.
func (l *listener) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w, err := l.ResourceInterface.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		if event.Type != watch.Error {
			l.heard.Store(monotonic.Now())
		}
		return event, true
	}), nil
}
