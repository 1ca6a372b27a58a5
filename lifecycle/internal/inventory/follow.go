package inventory

import (
	"bufio"
	"context"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/kit/worker"
)

// Follow returns what a reflector needs to follow all objects of a type. They come as
// *metav1.PartialObjectMetadata with what ties objects together and nothing else:
// names, uid, resourceVersion, owners, finalizers and the time of deletion. Following
// every object of every type has to cost next to nothing, so they are not decoded by
// client-go: that takes three passes and builds a tree of managedFields.
func (s *Source) Follow(t *Type) cache.ListerWatcher {
	return worker.ListThenWatch(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			result := s.metadataOf(t, options).Do(ctx)
			if err := result.Error(); err != nil {
				return nil, err // Raw knows less about it: not that a page has expired
			}
			body, err := result.Raw()
			if err != nil {
				return nil, err
			}
			return decodeList(body)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			body, err := s.metadataOf(t, options).Stream(ctx)
			if err != nil {
				return nil, err
			}
			reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")
			return watch.NewStreamWatcher(&eventStream{body, bufio.NewReader(body)}, reporter), nil
		},
	})
}

// metadataOf returns the request for a type's objects in all namespaces.
func (s *Source) metadataOf(t *Type, options metav1.ListOptions) *rest.Request {
	path := []string{"/apis", t.Group, t.Version, t.Resource}
	if t.Group == "" {
		path = []string{"/api", t.Version, t.Resource}
	}
	return s.objects.Get().AbsPath(path...).SetHeader("Accept", s.metadata).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// eventStream decodes a watch: one event a line.
type eventStream struct {
	body io.Closer
	in   *bufio.Reader
}

// Decode waits for the next event. What the end of the connection has cut is none: the
// reflector goes on from the event before.
func (e *eventStream) Decode() (watch.EventType, runtime.Object, error) {
	line, err := e.in.ReadBytes('\n')
	if err != nil {
		return "", nil, err
	}
	return decodeEvent(line)
}

// Close ends the watch.
func (e *eventStream) Close() { _ = e.body.Close() }

var _ watch.Decoder = (*eventStream)(nil)
