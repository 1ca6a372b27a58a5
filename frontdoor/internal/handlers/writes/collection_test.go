package writes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/portico-platform/portico/frontdoor/internal/http/audit"
	"github.com/portico-platform/portico/frontdoor/internal/http/request"
	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
)

// pagedStore is a store of many large objects, which it makes when they are read. Those that were
// deleted can be read at the revision of the list.
type pagedStore struct {
	services.Store
	t             *testing.T
	pages, inPage int
	data          string
	expired       bool // after the first page, the history is gone
	lists         atomic.Int64
	deleted       atomic.Int64
	most          uint64 // bytes of the heap
}

const listedAt = 7

func (s *pagedStore) object(key resource.Key) services.Object {
	return services.Object{Key: key, Revision: 5, UID: "u-" + key.Name, JSON: fmt.Appendf(nil,
		`{"metadata":{"name":%q,"namespace":%q,"uid":"u-%s","resourceVersion":"5"},"data":{"a":%q}}`, key.Name, key.Namespace, key.Name, s.data)}
}

func (s *pagedStore) List(_ context.Context, r services.ListRequest) (page services.Page, err error) {
	first := s.lists.Add(1) == 1
	if exact := r.Read.Mode == services.Exact; exact == first || exact && r.Read.Revision != listedAt {
		return page, fmt.Errorf("unexpected read %+v", r)
	}
	if s.expired && !first {
		return page, services.Expired("compacted")
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.most = max(s.most, m.HeapAlloc)
	n := 0
	if r.After != "" {
		_, _ = fmt.Sscanf(r.After, "%d", &n)
	}
	for i := range s.inPage {
		page.Objects = append(page.Objects, s.object(resource.Key{GroupResource: r.GroupResource, Namespace: r.Namespace, Name: fmt.Sprintf("c%d-%d", n, i)}))
	}
	if n++; n < s.pages {
		page.Next = fmt.Sprint(n)
	}
	page.Revision, page.Remaining = listedAt, -1
	return page, nil
}

func (s *pagedStore) Get(_ context.Context, r services.GetRequest) (services.Object, error) {
	return s.object(r.Key), nil
}

func (s *pagedStore) Delete(_ context.Context, r services.DeleteRequest) (services.Object, error) {
	s.deleted.Add(1)
	gone := s.object(r.Key)
	gone.Revision = 100
	return gone, nil
}

// counted is a response of which only the number of objects is kept.
type counted struct {
	header http.Header
	tail   string
	names  int
}

func (c *counted) Header() http.Header { return c.header }
func (c *counted) WriteHeader(int)     {}

func (c *counted) Write(b []byte) (int, error) {
	const name = `"uid":"u-c`
	text := c.tail + string(b)
	c.names += strings.Count(text, name)
	c.tail = text[max(len(text)-len(name)+1, 0):]
	return len(b), nil
}

// deleteAll deletes all objects of a store.
func deleteAll(t *testing.T, s *pagedStore) (*counted, error) {
	c := newClient(t, s, "10.0.0.0/24")
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	r := &request.Request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodDelete, configMaps, nil),
		User: services.UserInfo{Name: "tester"}, Audit: &audit.Record{}}
	if _, err := r.Identify(c.engine); err != nil {
		t.Fatal(err)
	}
	w := &counted{header: http.Header{}}
	err := c.handlers.DeleteCollection(w, r)
	s.most -= min(s.most, before.HeapAlloc)
	return w, err
}

// TestLargeCollectionsAreNotHeld deletes 50 MB of objects: all are deleted and returned, as they were at the revision of
// the list, and no more than some pages are in memory.
func TestLargeCollectionsAreNotHeld(t *testing.T) {
	s := &pagedStore{t: t, pages: 25, inPage: 10, data: strings.Repeat("x", 200_000)}
	w, err := deleteAll(t, s)
	if want := s.pages * s.inPage; err != nil || s.deleted.Load() != int64(want) || w.names != want {
		t.Errorf("%d of %d deleted, %d returned: %v", s.deleted.Load(), want, w.names, err)
	}
	if s.most > 40<<20 {
		t.Errorf("%d MiB in memory", s.most>>20)
	}
}

// TestSmallCollectionsAreReadOnce: one page is returned without another read.
func TestSmallCollectionsAreReadOnce(t *testing.T) {
	s := &pagedStore{t: t, pages: 1, inPage: 10}
	w, err := deleteAll(t, s)
	if err != nil || s.deleted.Load() != 10 || w.names != 10 || s.lists.Load() != 1 {
		t.Errorf("%d deleted, %d returned, %d reads: %v", s.deleted.Load(), w.names, s.lists.Load(), err)
	}
	s = &pagedStore{t: t, pages: 2, inPage: 10, expired: true}
	if _, err := deleteAll(t, s); !services.IsReason(err, services.ReasonExpired) {
		t.Errorf("without the history: %v", err)
	}
	if _, err := deleteAll(t, &pagedStore{t: t, pages: 1, inPage: 0}); err != nil {
		t.Errorf("an empty collection: %v", err)
	}
}
