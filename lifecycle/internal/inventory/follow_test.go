package inventory

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/portico-platform/portico/services/vocabulary"
)

// follow returns the ListWatch of widgets on an API that gives every request the same
// response.
func follow(t *testing.T, answer http.HandlerFunc) cache.ListerWatcherWithContext {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	source, err := NewSource(&rest.Config{Host: server.URL, QPS: -1}, vocabulary.Platform())
	if err != nil {
		t.Fatal(err)
	}
	widgets := &Type{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}}
	return cache.ToListerWatcherWithContext(source.Follow(widgets))
}

func TestFollowLists(t *testing.T) {
	widgets := follow(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/apis/example.com/v1/widgets" || query.Get("limit") != "500" || query.Has("watch") || r.Header.Get("Accept") != partial(vocabulary.Platform()) {
			t.Errorf("%s, accepting %q", r.URL, r.Header.Get("Accept"))
		}
		if query.Get("continue") == "expired" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
			return
		}
		fmt.Fprintf(w, `{"metadata":{"resourceVersion":"9"},"items":[`+object+`]}`, managed())
	})
	list, err := widgets.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500})
	if err != nil || len(list.(*metav1.PartialObjectMetadataList).Items) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := widgets.ListWithContext(t.Context(), metav1.ListOptions{Limit: 500, Continue: "expired"}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a page that has expired: %v", err)
	}
}

// TestFollowWatches: the connection breaks in the middle of an event.
func TestFollowWatches(t *testing.T) {
	widgets := follow(t, func(w http.ResponseWriter, r *http.Request) {
		if query := r.URL.Query(); query.Get("watch") != "true" || query.Get("resourceVersion") != "6" || query.Get("allowWatchBookmarks") != "true" {
			t.Errorf("asked for %s", r.URL)
		}
		whole := fmt.Sprintf(event, managed())
		fmt.Fprint(w, whole, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}`+"\n", whole[:len(whole)/2])
	})
	w, err := widgets.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "6", AllowWatchBookmarks: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range w.ResultChan() {
		got = append(got, fmt.Sprint(e.Type, e.Object.(*metav1.PartialObjectMetadata).ResourceVersion))
	}
	if want := []string{"MODIFIED7", "BOOKMARK8"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFollowFails: the API sends an invalid event, and then none at all.
func TestFollowFails(t *testing.T) {
	widgets := follow(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") == "1" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		fmt.Fprintln(w, "no event")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if _, err := widgets.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"}); !apierrors.IsTooManyRequests(err) {
		t.Errorf("a refused watch: %v", err)
	}
	w, err := widgets.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if e := <-w.ResultChan(); e.Type != watch.Error || !apierrors.IsInternalError(apierrors.FromObject(e.Object)) {
		t.Errorf("got %v", e)
	}
	if _, more := <-w.ResultChan(); more {
		t.Error("the watch continues")
	}
}

// TestFollowStops: a watch without events can be stopped.
func TestFollowStops(t *testing.T) {
	ended := make(chan struct{})
	widgets := follow(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	w, err := widgets.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop()
	for range w.ResultChan() { // it may still report the end
	}
	<-ended
}

// TestFewConnections: the reflectors of many types, which all start at once, share few connections.
func TestFewConnections(t *testing.T) {
	const types = 200
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !r.URL.Query().Has("watch") {
			fmt.Fprint(w, `{"metadata":{"resourceVersion":"9"},"items":[]}`)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	source, err := NewSource(&rest.Config{Host: server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}, vocabulary.Platform())
	if err != nil {
		t.Fatal(err)
	}
	var started, ended sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer ended.Wait()
	defer cancel()
	for i := range types {
		of := cache.ToListerWatcherWithContext(source.Follow(&Type{GroupVersionResource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprint("widgets", i)}}))
		started.Add(1)
		ended.Go(func() {
			defer started.Done()
			if _, err := of.ListWithContext(ctx, metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
			w, err := of.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "9"})
			if err != nil {
				t.Error(err)
				return
			}
			ended.Go(func() {
				<-ctx.Done()
				w.Stop()
			})
		})
	}
	started.Wait()
	if n := connections.Load(); n > atOnce {
		t.Errorf("%d watches have %d connections, want at most %d", types, n, atOnce)
	}
}
