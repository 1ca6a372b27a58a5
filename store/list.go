package store

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/portico-platform/portico/services"
	"github.com/portico-platform/portico/services/resource"
	"github.com/portico-platform/portico/store/internal/mirror"
	"github.com/portico-platform/portico/store/internal/object"
)

const (
	// A page has at most pageObjects if the caller sets no limit, and never more than
	// pageBytes, unless a single object is larger. A front door holds a page for each
	// client that is slow to read a list, and both sides hold several copies while it
	// is sent: pageBytes bounds that memory for hundreds of clients.
	pageObjects = 500
	pageBytes   = 512 << 10
	// rereads is how many objects that can be read since are read one by one for a list.
	rereads = 3
)

// List is Store.List.
func (s *cluster) List(ctx context.Context, r services.ListRequest) (services.Page, error) {
	c, err := newCollector(r)
	if err != nil {
		return services.Page{}, err
	}
	var snapshot *mirror.Snapshot
	if r.Read.Mode == services.Exact {
		snapshot, err = s.exactly(ctx, r.Read.Revision)
	} else {
		snapshot, err = s.read(ctx, r.Read)
	}
	if err != nil {
		return services.Page{}, err
	}
	if snapshot == nil {
		s.metrics.lists.WithLabelValues("history").Inc()
		return s.fromHistory(ctx, c, r.Read.Revision)
	}
	s.metrics.lists.WithLabelValues("memory").Inc()
	page := fromMemory(c, snapshot)
	for tried := 0; c.unreadable != nil; tried++ {
		if r.Read.Mode == services.Exact || tried == rereads {
			return s.again(ctx, r, snapshot)
		}
		if _, err := s.readable(ctx, c.unreadable.Key); err != nil && !services.IsReason(err, services.ReasonNotFound) {
			return services.Page{}, err
		}
		if snapshot, err = s.read(ctx, r.Read); err != nil {
			return services.Page{}, err
		}
		if c, err = newCollector(r); err != nil {
			return services.Page{}, err
		}
		page = fromMemory(c, snapshot)
	}
	if page.Next != "" {
		s.mirror.Pin(snapshot)
	}
	if r.Read.Mode == services.Exact {
		page.Revision = r.Read.Revision
	}
	return page, nil
}

// again reads a page of which an object in memory cannot be read from etcd.
func (s *cluster) again(ctx context.Context, r services.ListRequest, snapshot *mirror.Snapshot) (services.Page, error) {
	c, err := newCollector(r)
	if err != nil {
		return services.Page{}, err
	}
	revision := snapshot.Revision
	if r.Read.Mode == services.Exact {
		revision = r.Read.Revision
	}
	return s.fromHistory(ctx, c, revision)
}

// exactly returns the state at a revision, or nil if the mirror no longer has it. It
// returns Expired (410) for a revision before the restoration of etcd.
func (s *cluster) exactly(ctx context.Context, revision int64) (*mirror.Snapshot, error) {
	if revision <= 0 {
		return nil, services.BadRequest("an exact read needs a revision")
	}
	if err := s.reach(ctx, revision); err != nil {
		return nil, err
	}
	if after := s.mirror.Epoch().After; revision <= after {
		return nil, services.Expired("The resourceVersion for the provided list is too old: the store was restored, and its history begins after %d.", after)
	}
	snapshot, _ := s.mirror.At(revision)
	return snapshot, nil
}

func fromMemory(c *collector, snapshot *mirror.Snapshot) services.Page {
	if c.selector.Empty() {
		if n := min(snapshot.CountAfter(c.prefix, max(c.prefix, c.from)), int64(c.limit)); n > 0 {
			c.page.Objects = make([]services.Object, 0, n)
		}
	}
	snapshot.Ascend(c.scan, c.from, c.take)
	if c.beyond > 0 && c.page.End == nil && c.findEnd {
		c.page.End = new(string) // the collection ends before the limit
	}
	c.page.Revision, c.page.Epoch = snapshot.Revision, snapshot.Epoch
	if c.page.Next != "" && c.selector.Empty() {
		c.page.Remaining = snapshot.CountAfter(c.prefix, c.prefix+c.page.Next)
	}
	return c.page
}

// fromHistory reads a page from etcd at a revision that the mirror no longer holds, or has
// not read. Unreadable (500) if an object cannot be read, unless the caller requests those too.
func (s *cluster) fromHistory(ctx context.Context, c *collector, revision int64) (services.Page, error) {
	c.page.Revision, c.page.Epoch = revision, s.mirror.Epoch().ID
	c.findEnd = false // it would read from etcd what the caller reads again
	end := clientv3.GetPrefixRangeEnd(c.scan)
	for from := max(c.from, c.scan); ; {
		part, err := s.get(ctx, "range", from, clientv3.WithRange(end), clientv3.WithRev(revision), clientv3.WithLimit(pageObjects))
		switch {
		case errors.Is(err, rpctypes.ErrCompacted):
			return services.Page{}, services.Expired("The resourceVersion for the provided list is too old.")
		case err != nil:
			return services.Page{}, failure(err)
		}
		for i, kv := range part.Kvs {
			from = string(kv.Key)
			o, err := s.codec.Decode(from, kv.Value, kv.ModRevision)
			if err != nil {
				continue // it is not the path of an object
			}
			s.mirror.Read(&o)
			more := c.take(from, &o)
			if c.unreadable != nil {
				return services.Page{}, c.unreadable.Err()
			}
			if !more {
				if c.selector.Empty() {
					c.page.Remaining = part.Count - int64(i)
				}
				return c.page, nil
			}
		}
		if !part.More {
			return c.page, nil
		}
		from += "\x00"
	}
}

// collector fills a page with the matching objects, which take receives in path order.
type collector struct {
	page     services.Page
	selector resource.Selector
	prefix   string // of the collection
	scan     string // prefix of the objects that may match
	from     string // path where the page starts
	limit    int
	bytes    int
	// unreadable is an object of the page that cannot be read, unless the caller requests those too. The page is
	// incomplete then.
	unreadable *services.Object
	all        bool // whether the caller requests those too
	name       string
	// beyond counts the objects between a page that has reached pageBytes and the end of the limit, if the caller
	// requests that, and last is the path of the last one.
	findEnd bool
	beyond  int
	last    string
}

func newCollector(r services.ListRequest) (*collector, error) {
	selector, err := resource.ParseSelector(r.LabelSelector, r.FieldSelector)
	if err != nil {
		return nil, services.BadRequest("%v", err)
	}
	if r.Limit < 0 {
		return nil, services.BadRequest("limit must not be negative")
	}
	c := &collector{selector: selector, prefix: r.GroupResource.Path(), limit: r.Limit, all: r.WithUnreadable, findEnd: r.FindEnd && r.Limit > 0}
	if c.limit == 0 {
		c.limit = pageObjects
	}
	if r.Namespace != "" {
		c.prefix += r.Namespace + "/"
	}
	c.scan = c.prefix
	name, named := selector.Field("metadata.name")
	if c.name = name; named && r.Namespace != "" {
		c.scan += name
	}
	if r.After != "" {
		c.from = c.prefix + r.After + "\x00"
	}
	return c, nil
}

// take adds an object to the page if it matches. It returns false if the page is full:
// then another page follows.
func (c *collector) take(path string, o *services.Object) bool {
	bad := object.Unreadable(o)
	switch {
	case bad && c.name != "" && c.name != o.Key.Name:
		return true // it is another one, whatever it contains
	case bad && !c.all && c.page.Next == "":
		c.unreadable = o
		return false
	}
	if !bad && !c.matches(o) {
		return true
	}
	if c.page.Next != "" {
		return c.pass(path, bad)
	}
	if n := len(c.page.Objects); n > 0 && (n >= c.limit || c.bytes+len(o.JSON) > pageBytes) {
		c.page.Next = strings.TrimPrefix(c.page.Objects[n-1].Key.Path(), c.prefix)
		if !c.selector.Empty() {
			c.page.Remaining = -1
		}
		return n < c.limit && c.findEnd && c.pass(path, bad)
	}
	c.page.Objects = append(c.page.Objects, *o)
	c.bytes += len(o.JSON)
	return true
}

func (c *collector) matches(o *services.Object) bool {
	return c.selector.Empty() || c.selector.Matches(o.Key, o.Labels, o.Fields)
}

// pass counts a matching object after the page. It returns false where the limit ends, or if the caller will get an
// error for this object.
func (c *collector) pass(path string, bad bool) bool {
	if bad {
		c.findEnd = false
		return false
	}
	if c.beyond++; len(c.page.Objects)+c.beyond > c.limit {
		c.page.End = &c.last
		return false
	}
	c.last = strings.TrimPrefix(path, c.prefix)
	return true
}
