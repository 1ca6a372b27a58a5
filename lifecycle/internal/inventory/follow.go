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

// Follow returns the ListWatch for a reflector to follow all objects of a type. They
// are *metav1.PartialObjectMetadata with names, uid, resourceVersion, owners,
// finalizers and deletion time only. Following every object of every type has to be
// cheap, so client-go does not decode them: that takes three passes and builds a tree
// of managedFields. Few of them list or start a watch at a time.
func (s *Source) Follow(t *Type) cache.ListerWatcher {
	return worker.ListThenWatch(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
			defer s.end()
			result := s.metadataOf(t, options).Do(ctx)
			if err := result.Error(); err != nil {
				return nil, err // Raw would lose information, such as that a page has expired
			}
			body, err := result.Raw()
			if err != nil {
				return nil, err
			}
			return decodeList(body)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := s.begin(ctx); err != nil {
				return nil, err
			}
			defer s.end() // the response has started
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

// begin waits until few other lists and starts of watches are under way.
func (s *Source) begin(ctx context.Context) error {
	select {
	case s.waiting <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Source) end() { <-s.waiting }

// metadataOf returns the request for a type's objects in all namespaces.
func (s *Source) metadataOf(t *Type, options metav1.ListOptions) *rest.Request {
	path := []string{"/apis", t.Group, t.Version, t.Resource}
	if t.Group == "" {
		path = []string{"/api", t.Version, t.Resource}
	}
	return s.objects.Get().AbsPath(path...).SetHeader("Accept", s.metadata).
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, schema.GroupVersion{Version: "v1"})
}

// eventStream decodes a watch: one event per line.
type eventStream struct {
	body io.Closer
	in   *bufio.Reader
}

// Decode waits for the next event. An event cut off by the end of the connection is
// dropped: the reflector resumes after the one before.
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
